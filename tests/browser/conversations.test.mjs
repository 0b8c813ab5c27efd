// What a user does with conversations and answers: finds them again, deletes, copies, retries and rates them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { ago } from '../../crates/server/web/page/ago.js';
import { moment } from '../../crates/server/web/shared/time.js';
import { installed, startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, has, says, soon } from './support/soon.mjs';

const axe = readFileSync(installed('axe-core/axe.min.js'), 'utf8');
let deck;
let browser;

before(async () => {
  [deck, browser] = await Promise.all([
    startDeck({ QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' }),
    startBrowser(),
  ]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
});

test('conversations are listed with titles and times, opened, continued and deleted, by keyboard', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await by('new-chat').click();
  await by('welcome').waitFor();
  await ask('What is dead water?');
  await by('history').focus();
  await page.keyboard.press('Enter');
  await counts(by('conversation'), 2);
  await says(by('conversation').nth(0), /^What is dead water\?\s+just now$/);
  await says(by('conversation').nth(1), /^Who designed the Fram\?/);
  await has(by('conversation').nth(0).locator('.conversation'), 'aria-current', 'true');
  const written = await by('conversation').nth(0).locator('time').getAttribute('datetime');
  assert.ok(Math.abs(Date.parse(written) - Date.now()) < 600_000, written);

  await by('conversation').nth(1).locator('.conversation').press('Enter');
  await says(by('message').first(), 'Who designed the Fram?');
  await counts(by('message'), 2);
  assert.equal(await by('conversations').isVisible(), false);
  await ask('What is dead water?');
  await page.reload();
  await counts(by('message'), 4, 'it was continued, and is this tab\'s now');

  await by('history').click();
  await counts(by('conversation'), 2);
  await says(by('conversation').nth(0), /^Who designed the Fram\?/, 'the one that was used last is first');
  await by('conversation-delete').nth(1).press('Enter');
  await by('conversation-delete-confirm').waitFor();
  assert.equal(await by('conversation-delete-confirm').evaluate((button) => button === document.activeElement), true);
  await page.keyboard.press('Enter');
  await counts(by('conversation'), 1);
  assert.equal(await page.evaluate(() => document.querySelector('qd-conversations').contains(document.activeElement)), true);
  await page.keyboard.press('Escape');
  assert.equal(await by('history').evaluate((button) => button === document.activeElement), true);

  // The one that is shown is deleted too.
  await by('history').click();
  await by('conversation-delete').click();
  await by('conversation-delete-confirm').click();
  await by('welcome').waitFor();
  await says(by('conversations-state'), 'No conversations yet.');
  await page.reload();
  await by('welcome').waitFor();
  await leave();
});

test('another user finds none of them', async () => {
  const first = await openPage(browser, deck);
  await first.ask('Who designed the Fram?');
  const other = await openPage(browser, deck);
  await other.by('history').click();
  await says(other.by('conversations-state'), 'No conversations yet.');
  await other.leave();
  await first.leave();
});

test('a long list is shown in pages', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('hello');
  for (let number = 0; number < 33; number += 1) {
    const said = await page.request.post(`${deck.url}/api/chat`, { data: { id: `n${number}`, message: `Hello ${number}` } });
    assert.equal(said.status(), 200);
    await said.text();
  }
  await by('history').click();
  await counts(by('conversation'), 30);
  await by('conversations-more').click();
  await counts(by('conversation'), 34);
  assert.equal(await by('conversations-more').isVisible(), false);
  await leave();
});

test('what was said in a call stays with its conversation', async () => {
  const { page, by, say, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await by('voice-start').click();
  await by('voice-state').filter({ hasText: 'Type to it' }).waitFor();
  await say('What is dead water?');
  await by('caption').nth(1).waitFor();
  await by('new-chat').click();
  await by('welcome').waitFor();
  await counts(by('caption'), 0);
  await by('voice-start').waitFor();
  await ask('hello');
  await by('history').click();
  await by('conversation').nth(1).locator('.conversation').click();
  await says(by('caption').first(), 'What is dead water?');
  await page.reload();
  await says(by('caption').first(), 'What is dead water?');
  await leave();
});

test('an answer is copied as text, and the page says so', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck, { permissions: ['clipboard-read', 'clipboard-write'] });
  const answer = await ask('Who designed the Fram?');
  await answer.getByTestId('copy').press('Enter');
  await says(by('notice'), 'Copied.');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /Colin Archer/);
  await has(answer.getByTestId('copy'), 'aria-label', 'Copied');
  // On plain HTTP there is no such clipboard.
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await has(answer.getByTestId('copy'), 'aria-label', 'Copy');
  await answer.getByTestId('copy').click();
  await has(answer.getByTestId('copy'), 'aria-label', 'Copied');
  await leave();
});

test('the last answer is written again, and only the last', async () => {
  const { by, ask, answer, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await ask('What is dead water?');
  await counts(by('answer-retry').filter({ visible: true }), 1);
  await by('answer-retry').filter({ visible: true }).click();
  await soon(async () => assert.match(await (await answer()).innerText(), /dead water/i));
  await counts(by('message'), 4);
  await leave();
});

test('a question whose session has ended is asked anew', async () => {
  const { page, by, ask, answer, leave } = await openPage(browser, deck, { expects: [/400/] });
  await ask('Who designed the Fram?');
  const ended = { error: { type: 'VALIDATION', message: 'There is no answer to regenerate.', retryable: false } };
  await page.route('**/api/chat', (route) =>
    route.request().postData().includes('regenerate') ? route.fulfill({ status: 400, json: ended }) : route.continue(),
  );
  await by('answer-retry').click();
  await counts(by('message'), 4);
  await says(await answer(), /Colin Archer/);
  await counts(by('error'), 0);
  await leave();
});

test('an answer is rated with a comment, and the rating is there after a reload and can be taken back', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await by('rate-down').press('Enter');
  await has(by('rate-down'), 'aria-pressed', 'true');
  await page.keyboard.press('Tab');
  await by('rate-comment').fill('Too short.');
  await by('rate-send').click();
  await says(by('notice'), 'Thank you.');
  await counts(by('rate-form'), 0);
  await soon(async () => {
    const { feedback } = await (await page.request.get(`${deck.url}/api/deck/feedback`)).json();
    assert.deepEqual([feedback[0].rating, feedback[0].comment], ['down', 'Too short.']);
  });
  await page.reload();
  await has(by('rate-down'), 'aria-pressed', 'true');
  await by('rate-up').click();
  await has(by('rate-up'), 'aria-pressed', 'true');
  await has(by('rate-down'), 'aria-pressed', 'false');
  await by('rate-comment').press('Escape');
  assert.equal(await by('rate-up').evaluate((button) => button === document.activeElement), true);
  await by('rate-up').click();
  await has(by('rate-up'), 'aria-pressed', 'false');
  await soon(async () => {
    const { feedback } = await (await page.request.get(`${deck.url}/api/deck/feedback`)).json();
    assert.deepEqual(feedback, []);
  });
  await leave();
});

test('the rating of a server that is away is not pretended', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck, { expects: [/503/] });
  await ask('Who designed the Fram?');
  await page.route('**/api/feedback', (route) => route.fulfill({ status: 503, json: {} }));
  await by('rate-up').click();
  await says(by('notice'), 'Your rating was not received. Try again.');
  await has(by('rate-up'), 'aria-pressed', 'false');
  await leave();
});

test('the arrow keys bring back what was sent, and leave alone what is being written', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await ask('What is dead water?');
  const composer = by('composer');
  await composer.focus();
  await page.keyboard.press('ArrowUp');
  assert.equal(await composer.inputValue(), 'What is dead water?');
  await page.keyboard.press('ArrowUp');
  assert.equal(await composer.inputValue(), 'Who designed the Fram?');
  await page.keyboard.press('ArrowUp');
  assert.equal(await composer.inputValue(), 'Who designed the Fram?', 'there is nothing before the first');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  assert.equal(await composer.inputValue(), '');
  await composer.fill('Something new');
  await page.keyboard.press('ArrowUp');
  assert.equal(await composer.inputValue(), 'Something new');
  await page.reload();
  await by('message').first().waitFor();
  await composer.focus();
  await page.keyboard.press('ArrowUp');
  assert.equal(await composer.inputValue(), 'What is dead water?', 'also after a reload');
  await leave();
});

test('no request is cancelled after a normal end', async () => {
  const { page, by, ask, say, answer, leave } = await openPage(browser, deck);
  const [failed, finished] = [[], []];
  page.on('requestfailed', (request) => failed.push(`${request.url()} ${request.failure()?.errorText}`));
  page.on('requestfinished', (request) => finished.push(new URL(request.url()).pathname));
  await ask('Who designed the Fram?');
  await ask('What is dead water?');
  await say('Book a meeting tomorrow at 10:00 with ann@example.com');
  await by('confirm-approve').click();
  await by('confirm-title').filter({ hasText: 'Approved and done.' }).waitFor();
  await answer();
  await by('new-chat').click();
  await by('welcome').waitFor();
  await ask('hello');
  await soon(() => assert.equal(finished.filter((path) => path === '/api/chat').length, 5, 'read to the end'));
  assert.deepEqual(failed, []);
  await leave();
});

test('times are what a reader would say', () => {
  const now = new Date(2026, 10, 16, 9, 30);
  const at = (/** @type {number[]} */ ...parts) => new Date(2026, ...parts);
  const time = (hour) => new Date(2026, 0, 1, hour).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  assert.equal(moment(at(10, 17, 10, 0), now), `tomorrow ${time(10)}`);
  assert.equal(moment(at(10, 16, 14, 0), now), `today ${time(14)}`);
  assert.equal(moment(at(10, 15, 23, 0), now), `yesterday ${time(23)}`);
  assert.equal(moment(at(10, 19, 10, 0), now), `Thursday ${time(10)}`);
  assert.match(moment(at(10, 30, 10, 0), now), /30/);
  assert.doesNotMatch(moment(at(10, 30, 10, 0), now), /2026/);
  assert.match(moment(new Date(2090, 0, 17, 10, 0), now), /2090/);
  assert.equal(ago(at(10, 16, 9, 29, 40), now), 'just now');
  assert.equal(ago(at(10, 16, 9, 28), now), '2 minutes ago');
  assert.equal(ago(at(10, 16, 6, 0), now), '3 hours ago');
  assert.equal(ago(at(10, 15, 8, 0), now), `yesterday ${time(8)}`);
});

test('a question tells its times in words, and exactly to machines', async () => {
  const { page, by, say, leave } = await openPage(browser, deck);
  await say('Book a meeting tomorrow at 15:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  const preview = by('confirm-card').locator('.confirm-preview');
  await says(preview, /tomorrow \S*0?3:00|tomorrow 15:00/);
  const exact = await preview.locator('time').first().getAttribute('datetime');
  const tomorrow = await page.evaluate(() => new Date(Date.now() + 86_400_000).toISOString().slice(0, 10));
  assert.equal(exact, `${tomorrow}T15:00:00.000Z`);
  await leave();
});

for (const colorScheme of ['light', 'dark']) {
  test(`the list and the ratings have no serious accessibility violation, ${colorScheme}`, async () => {
    const { page, by, ask, leave } = await openPage(browser, deck, { colorScheme, reducedMotion: 'reduce' });
    const found = [];
    const look = async (where) => {
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      found.push(...serious.flatMap(({ id, nodes }) => nodes.map((node) => `${where}: ${id} ${node.target}`)));
    };
    await ask('Who designed the Fram?');
    await by('rate-up').click();
    await by('rate-comment').waitFor();
    await look('a rating');
    await by('history').click();
    await by('conversation').waitFor();
    await look('the list');
    await by('conversation-delete').click();
    await look('before deleting');
    assert.deepEqual(found, []);
    await leave();
  });
}

test('the list fits a phone', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck, { viewport: { width: 340, height: 640 } });
  await ask('Tell me everything about the voyage of the Fram from Christiania to the Arctic Ocean and back again');
  await by('history').click();
  await by('conversation').waitFor();
  const sticksOut = await page.evaluate(() => {
    const panel = document.querySelector('qd-conversations aside');
    return document.documentElement.scrollWidth > innerWidth || panel.scrollWidth > panel.clientWidth;
  });
  assert.equal(sticksOut, false);
  await leave();
});
