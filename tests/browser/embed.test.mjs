// The chat on another site's page: over HTTP and HTTPS, in a browser that keeps third-party cookies from everyone.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { installed, openAt, startBrowser } from './support/browser.mjs';
import { speak } from './support/microphone.mjs';
import { resolves, startSite } from './support/site.mjs';
import { counts, has, says, soon } from './support/soon.mjs';

/** All that the widget loads, in the encoding that browsers ask for over HTTPS, and what the first call loads besides. */
const MAX_BYTES = 25 * 1_024;
const MAX_CALL_BYTES = 10 * 1_024;
/** The script that every visitor loads. */
const MAX_SCRIPT_BYTES = 3_000;
/** How much later than the bare page a page with the widget may be painted, and how soon its button is there. */
const MAX_DELAY_MS = 100;
const MAX_BUTTON_MS = 1_500;

const axe = readFileSync(installed('axe-core/axe.min.js'), 'utf8');
const flags = [resolves, '--test-third-party-cookie-phaseout'];
const insecure = { ignoreHTTPSErrors: true };
/** A request for a meeting; each has an hour of its own, because they are all in one calendar. */
const booking = () => `Book a meeting tomorrow at ${(hour += 1)}:00 with ann@example.com`;
let hour = 6;
const sites = {};
let browser;

before(async () => {
  [browser, sites.http, sites.https] = await Promise.all([
    startBrowser({ flags }),
    startSite(),
    startSite({ isEncrypted: true }),
  ]);
});

after(async () => {
  await browser?.close();
  await Promise.all(Object.values(sites).map((site) => site.remove()));
});

/** A visitor of the site, who has opened the chat. */
async function visit(site, options = {}) {
  const user = await openAt(options.browser ?? browser, site.url, 'bubble', { ...insecure, ...options });
  await user.by('bubble').click();
  await user.by('composer').waitFor();
  return user;
}

const cookies = (site) => site.requests.filter(({ headers }) => headers.cookie).map(({ path }) => path);

test('third-party cookies are really blocked', async () => {
  const { page, leave } = await openAt(browser, sites.https.url, 'bubble', insecure);
  const probe = async () => {
    await page.evaluate((url) => fetch(url, { credentials: 'include' }).then(() => {}), `${sites.https.server}/probe`);
  };
  await probe();
  await probe();
  const probes = sites.https.requests.filter(({ path }) => path === '/probe');
  assert.equal(probes.length, 2);
  assert.equal(probes[1].headers.cookie, undefined);
  await leave();
});

test('a visitor of another site rates an answer', async () => {
  const { by, ask, leave } = await visit(sites.http);
  await ask('Who designed the Fram?');
  await by('rate-down').last().click();
  await has(by('rate-down').last(), 'aria-pressed', 'true');
  await by('rate-comment').fill('Too short.');
  await by('rate-send').click();
  const sent = () => sites.http.requests.filter(({ method, path }) => method === 'POST' && path === '/api/feedback');
  await soon(() => assert.equal(sent().length, 2, 'the thumb, then the comment'));
  await leave();
});

for (const scheme of ['http', 'https']) {
  test(`a visitor of another site asks, approves and finds it all again after a reload, over ${scheme}`, async () => {
    const site = sites[scheme];
    const earlier = site.requests.length;
    const { page, by, ask, say, answer, leave } = await visit(site);
    const found = await ask('Who designed the Fram?');
    await says(found, /Colin Archer/);
    await by('tool-card').filter({ hasText: 'kb_search' }).first().waitFor();

    await say(booking());
    await by('confirm-approve').click();
    await answer();
    await says(by('confirm-title'), 'Approved and done.');
    const cards = by('tool-card').filter({ hasText: 'done' });
    await counts(cards.filter({ hasText: 'calendar_create_event' }), 1);
    const shown = await cards.count();

    await page.reload();
    await counts(cards, shown, 'the chat is open again, with its conversation');
    await says(by('message').first(), 'Who designed the Fram?');
    await says(await ask('And who paid for it?'), /\S/, 'the conversation goes on');

    assert.deepEqual(cookies(site), [], 'no cookie was sent');
    const requests = site.requests.slice(earlier);
    const chats = requests.filter(({ method, path }) => method === 'POST' && path === '/api/chat');
    assert.ok(chats.length >= 4);
    assert.ok(chats.slice(1).every(({ headers }) => headers['x-quarterdeck-session']), 'a token is sent instead');
    assert.ok(!site.requests.some(({ path }) => /session_?token|x-quarterdeck/i.test(path)), 'and never in an address');
    await leave();
  });

  test(`a visitor of another site talks, over ${scheme}`, async (test) => {
    const site = sites[scheme];
    const microphone = speak([2, 'Who designed the Fram?']);
    const talking = await startBrowser({ flags, microphone: microphone.file });
    test.after(async () => {
      await talking.close();
      microphone.remove();
    });
    const { page, by, say, leave } = await visit(site, { browser: talking, permissions: ['microphone'] });
    const frames = [];
    page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => frames.push(payload)));
    await by('voice-start').click();
    const state = (text) => by('voice-state').filter({ hasText: text }).waitFor();
    await state('Speaking');
    await has(by('caption').first(), 'data-role', 'user', 'the agent heard something');
    assert.ok(frames.some((frame) => frame.length === 640), 'the microphone was heard, 20 ms at a time');
    await say(booking());
    await by('confirm-approve').click();
    await says(by('confirm-title'), 'Approved and done.');
    await by('voice-stop').click();
    await by('voice-start').waitFor();
    const calls = site.requests.filter(({ method }) => method === 'UPGRADE');
    assert.ok(calls.length > 0 && calls.every(({ path }) => path.startsWith('/voice?ticket=')));
    assert.deepEqual(cookies(site), []);
    await leave();
  });
}

test('a visitor whose browser keeps nothing for the site can still chat and approve', async () => {
  const context = await browser.newContext(insecure);
  const page = await context.newPage();
  await page.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException('blocked', 'SecurityError');
        },
      });
    }
  });
  await page.goto(sites.http.url);
  await page.getByTestId('bubble').click();
  await page.getByTestId('composer').fill(booking());
  await page.getByTestId('send').click();
  await page.getByTestId('confirm-approve').click();
  await says(page.getByTestId('confirm-title'), 'Approved and done.');
  await context.close();
});

test('the widget is small', async (test) => {
  const { server } = sites.http;
  // The page's own fetch decompresses, so it is asked for as a program does.
  const get = async (path) => {
    const response = await raw(`${server}${path}`);
    assert.equal(response.headers['content-encoding'], 'br', path);
    assert.equal(response.headers['access-control-allow-origin'], '*', path);
    assert.equal(response.headers['cross-origin-resource-policy'], 'cross-origin', path);
    assert.equal(response.headers['set-cookie'], undefined, path);
    return response.body;
  };
  const script = await get('/embed.js');
  const text = brotliDecompressSync(script).toString();
  const [folder] = text.match(/\/web\/\w+\//);
  const sizes = async (names) => Promise.all(names.map(async (name) => [name, (await get(folder + name)).length]));
  const chat = [['embed.js', script.length], ...(await sizes(['embed/widget.bundle.js', 'embed/widget.bundle.css']))];
  const rare = await sizes(['embed/at-times.bundle.js']);
  const call = await sizes(['embed/voice.bundle.js', 'page/voice/capture-worklet.js', 'page/voice/playback-worklet.js']);
  const sum = (files) => files.reduce((sum, [, size]) => sum + size, 0);
  test.diagnostic(`the chat ${sum(chat)} bytes: ${chat.map((file) => file.join(' ')).join(', ')}`);
  test.diagnostic(`a call ${sum(call)} bytes more: ${call.map((file) => file.join(' ')).join(', ')}`);
  test.diagnostic(`a record, a block or a call in the background ${sum(rare)} bytes more`);
  assert.ok(script.length <= MAX_SCRIPT_BYTES, `${script.length} bytes for every visitor`);
  assert.ok(sum(chat) <= MAX_BYTES, `${sum(chat)} bytes`);
  assert.ok(sum(call) <= MAX_CALL_BYTES, `${sum(call)} bytes`);
});

test('nothing but the script is loaded before the chat is opened, and then only what was measured', async () => {
  const before = sites.http.requests.length;
  const { page, by, leave } = await openAt(browser, sites.http.url, 'bubble');
  const seen = () => sites.http.requests.slice(before).map(({ path }) => path.replace(/\/web\/\w+\//, ''));
  await page.waitForTimeout(300);
  assert.deepEqual(seen(), ['/embed.js']);
  await by('bubble').click();
  await by('composer').waitFor();
  await soon(async () => assert.ok(seen().includes('/api/me')));
  const files = seen().filter((path) => !path.startsWith('/'));
  assert.deepEqual(files.toSorted(), ['embed/widget.bundle.css', 'embed/widget.bundle.js']);
  await leave();
});

test('the widget does not delay the page, and its button is there at once', async (test) => {
  const [bare, paints, buttons] = [[], [], []];
  for (let visitor = 0; visitor < 7; visitor += 1) {
    bare.push((await painted(`${sites.http.url}/bare`)).paint);
    const { paint, button } = await painted(sites.http.url);
    paints.push(paint);
    buttons.push(button);
  }
  const figures = `first paint ${median(paints)} ms, without the widget ${median(bare)} ms, button ${median(buttons)} ms`;
  test.diagnostic(figures);
  assert.ok(median(paints) <= median(bare) * 3 + MAX_DELAY_MS, figures);
  assert.ok(median(buttons) <= Math.max(MAX_BUTTON_MS, median(bare) * 5), figures);
});

test('the keyboard is enough: open, ask, close, and where the focus goes', async () => {
  const { page, by, answer, leave } = await openAt(browser, sites.http.url, 'bubble');
  await has(by('bubble'), 'aria-expanded', 'false');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await by('composer').waitFor();
  await has(by('bubble'), 'aria-expanded', 'true');
  await soon(async () => assert.equal(await focused(page), 'composer'));
  await page.keyboard.type('Who designed the Fram?');
  await page.keyboard.press('Enter');
  await answer();
  await by('citation').first().focus();
  await page.keyboard.press('Enter');
  await by('record').waitFor();
  await page.keyboard.press('Escape');
  await soon(async () => assert.equal(await focused(page), 'citation', 'Escape closes the record first'));
  await page.keyboard.press('Escape');
  await by('panel').waitFor({ state: 'hidden' });
  assert.equal(await focused(page), 'bubble');
  await has(by('bubble'), 'aria-expanded', 'false');
  await leave();
});

test('on a phone the chat fills the screen, and the focus stays in it', async () => {
  const { page, by, leave } = await visit(sites.http, { viewport: { width: 360, height: 640 } });
  await soon(async () => {
    const { x, y, width, height } = await by('panel').boundingBox();
    assert.deepEqual([x, y, width, height].map(Math.round), [0, 0, 360, 640]);
  });
  for (let press = 0; press < 12; press += 1) {
    await page.keyboard.press('Tab');
    const where = await page.evaluate(() => document.activeElement?.localName);
    assert.ok(['quarterdeck-chat', 'body'].includes(where), `the focus left for ${where}`);
  }
  await by('close').click();
  await by('panel').waitFor({ state: 'hidden' });
  assert.equal(await focused(page), 'bubble');
  await leave();
});

test('an answer is announced once, when it is complete', async () => {
  const { page, by, ask, leave } = await visit(sites.http);
  await by('panel').evaluate((panel) => {
    const place = panel.querySelector('.announce');
    globalThis.announced = [];
    new MutationObserver(() => globalThis.announced.push(place.textContent)).observe(place, { childList: true, characterData: true, subtree: true });
  });
  await ask('Who designed the Fram?');
  const announced = await page.evaluate(() => globalThis.announced);
  assert.equal(announced.length, 1, announced.join(' | '));
  assert.match(announced[0], /Colin Archer/);
  await leave();
});

test('the site sets colours, place and label, and its own styles stay outside', async () => {
  const site = sites.http;
  const html = `<style>html { font-size: 62.5%; } button { display: none !important; } * { letter-spacing: 9px; }
    quarterdeck-chat { --quarterdeck-accent: rgb(120, 0, 90); }</style>
    <quarterdeck-chat position="bottom-left" label="Ask us"></quarterdeck-chat>`;
  Object.assign(site, { html });
  const { page, by, leave } = await visit(site);
  Object.assign(site, { html: '<h1>Shop</h1>' });
  await counts(page.locator('quarterdeck-chat'), 1, 'the site placed it; the script adds none');
  await says(by('bubble'), 'Ask us');
  const style = (where, name) => where.evaluate((element, name) => getComputedStyle(element)[name], name);
  assert.equal(await style(by('send'), 'backgroundColor'), 'rgb(120, 0, 90)');
  assert.equal(await style(by('composer'), 'fontSize'), '16px');
  assert.equal(await style(by('composer'), 'letterSpacing'), 'normal');
  assert.ok((await by('bubble').boundingBox()).x < 100);
  await leave();
});

test('the operator says what the chat is called, what it greets with and offers, and its colours', async (test) => {
  const site = await startSite({
    settings: {
      QUARTERDECK_PAGE__TITLE: 'Harbour desk',
      QUARTERDECK_PAGE__WELCOME: 'Ask about our ships.',
      QUARTERDECK_PAGE__SUGGESTIONS: 'Who designed the Fram?',
      QUARTERDECK_PAGE__COLOURS__ACCENT: '#780059',
    },
  });
  test.after(() => site.remove());
  const { page, by, answer, leave } = await visit(site);
  await page.getByRole('dialog', { name: 'Harbour desk' }).waitFor();
  await says(by('welcome'), /^Ask about our ships\./);
  await by('suggestion').click();
  await says(await answer(), /Colin Archer/);
  assert.equal(await by('send').evaluate((send) => getComputedStyle(send).backgroundColor), 'rgb(120, 0, 89)');
  await leave();
});

for (const [colorScheme, viewport] of [
  ['light', { width: 1180, height: 860 }],
  ['dark', { width: 360, height: 640 }],
]) {
  test(`the widget has no accessibility violation: ${colorScheme}, ${viewport.width} pixels wide`, async () => {
    const site = sites.http;
    site.script = `data-theme="${colorScheme}"`;
    const user = await openAt(browser, site.url, 'bubble', { viewport, reducedMotion: 'reduce' });
    site.script = '';
    const { page, by, ask, say } = user;
    const found = [];
    const look = async (where) => found.push(...(await violations(page, where)));
    await look('closed');
    await by('bubble').click();
    await by('composer').waitFor();
    await look('open');
    await ask('Who designed the Fram?');
    await by('tool-card').first().locator('summary').click();
    await by('tool-card').first().locator('.gates').waitFor();
    await look('an answer');
    await by('citation').first().click();
    await look('a record');
    await page.keyboard.press('Escape');
    await say(booking());
    await by('confirm-approve').waitFor();
    await look('a question');
    await by('confirm-deny').click();
    await user.answer();
    assert.deepEqual(found, []);
    await user.leave();
  });
}

/** What axe finds in the widget, whatever its impact. */
async function violations(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run('quarterdeck-chat', { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${where}: ${id} ${node.target} ${node.failureSummary}`));
}

/** The test id of the element that has the focus, in whatever shadow root it is. */
function focused(page) {
  return page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.dataset.testid;
  });
}

const median = (figures) => figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)];

/** When a new visitor sees something, and when the button. */
async function painted(url) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector('quarterdeck-chat')?.shadowRoot) globalThis.buttonAt = performance.now();
      else requestAnimationFrame(look);
    };
    look();
  });
  await page.goto(url);
  if (!url.endsWith('/bare')) await page.waitForFunction(() => globalThis.buttonAt);
  const paint = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const observer = new PerformanceObserver((list) => {
          const [entry] = list.getEntriesByName('first-contentful-paint');
          if (entry) resolve(entry.startTime);
        });
        observer.observe({ type: 'paint', buffered: true });
      }),
  );
  const button = await page.evaluate(() => globalThis.buttonAt);
  await context.close();
  return { paint: Math.round(paint), button: Math.round(button ?? 0) };
}

/** A response as it came, compressed. */
function raw(url) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers: { 'accept-encoding': 'gzip, deflate, br' } }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(pieces) }));
    });
    asked.on('error', reject);
    asked.end();
  });
}
