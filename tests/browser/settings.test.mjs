// The page as an operator has set it: its words, colours and links, what it shows of tools, and where it may be framed.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';

let site;
let deck;
let plain;
let browser;

/** A page of another origin that shows whatever its address names in a frame. */
async function startSite() {
  const server = createServer((request, response) => {
    const shown = new URL(request.url, 'http://site').searchParams.get('show') ?? 'about:blank';
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><title>Shop</title><iframe title="chat" src="${shown}"></iframe>`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

before(async () => {
  site = await startSite();
  const settings = {
    QUARTERDECK_SERVER__FRAME_ANCESTORS: site.url,
    QUARTERDECK_PAGE__TITLE: 'Harbour <b>desk</b>',
    QUARTERDECK_PAGE__WELCOME: 'Ask about our ships.',
    QUARTERDECK_PAGE__SUGGESTIONS: 'Who designed the Fram?',
    QUARTERDECK_PAGE__LINKS: 'Imprint https://example.com/imprint',
    QUARTERDECK_PAGE__COLOURS__ACCENT: '#7a1f3d',
    QUARTERDECK_PAGE__SHOW__GATES: 'false',
    QUARTERDECK_PAGE__SHOW__JSON: 'false',
  };
  [deck, plain, browser] = await Promise.all([startDeck(settings), startDeck(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  await plain?.remove();
  site?.close();
});

test('the page has the words, colours and links of its operator, within its policy', async () => {
  const { page, by, answer, leave } = await openPage(browser, deck);
  assert.equal(await page.title(), 'Harbour <b>desk</b>');
  assert.equal((await page.locator('h1').innerText()).trim(), 'Harbour <b>desk</b>');
  assert.match(await by('welcome').innerText(), /Ask about our ships\./);
  const accent = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--accent'));
  assert.equal(accent, '#7a1f3d');
  assert.deepEqual(await page.locator('header nav a').allInnerTexts(), ['Imprint']);
  assert.equal(await by('suggestion').count(), 1);
  await by('suggestion').click();
  await answer();
  // A policy that refuses a style or a script would be an error in the console, which `leave` finds.
  await leave();
});

test('what is hidden of tools is neither shown nor sent, and sources stay', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  const stream = await page.evaluate(async () => {
    const body = JSON.stringify({ message: 'Who designed the Fram?' });
    const response = await fetch('/api/chat', { method: 'POST', body });
    return response.text();
  });
  assert.doesNotMatch(stream, /data-gates|"snippet"|"query"/);
  assert.match(stream, /"type":"source-(url|document)"/);
  await by('citation').first().waitFor();
  await by('tool-card').first().locator('summary').click();
  const card = await by('tool-card').first().innerText();
  assert.doesNotMatch(card, /Arguments|Gates|"id"/);
  await leave();
});

test('the page is framed by a listed site and by no other', async () => {
  const page = await browser.newPage();
  await page.goto(`${site.url}/?show=${encodeURIComponent(deck.url)}`);
  await page.frameLocator('iframe').getByTestId('composer').waitFor();
  const refused = page.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()));
  await page.goto(`${site.url}/?show=${encodeURIComponent(plain.url)}`);
  await refused;
  assert.equal(await page.frameLocator('iframe').getByTestId('composer').count(), 0);
  await page.close();
});
