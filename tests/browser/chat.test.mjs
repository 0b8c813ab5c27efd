// The page with the built-in rehearsal: what a new user sees and does.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, has, says } from './support/soon.mjs';

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

test('a new user sees the welcome text and the model', async () => {
  const { page, by, leave } = await openPage(browser, deck);
  await says(by('welcome'), /by text or by voice/);
  await counts(by('suggestion'), 3);
  await says(by('provider'), /Rehearsal, no language model/);
  await by('provider').click();
  await says(by('provider-more'), /rehearsal\/built-in/);
  await says(by('provider-more'), /GEMINI_API_KEY/);
  assert.equal(await page.title(), 'Quarterdeck');
  await leave();
});

test('a question is answered with sources that can be opened', async () => {
  const { page, by, answer, leave } = await openPage(browser, deck);
  await by('suggestion').first().click();
  const said = await answer();
  await says(said, /Colin Archer/);
  // Both namespaces that a visitor may read.
  await counts(by('tool-card'), 3);
  const names = await by('tool-card').locator('.tool-name').allInnerTexts();
  assert.deepEqual(names, ['kb_search', 'kb_search', 'kb_get']);

  await by('citation').first().click();
  await says(by('record').getByRole('heading').first(), 'Building the Fram, 1891–1892');
  await says(by('record'), /project:building-of-fram/);
  await says(by('record'), /well-seasoned oak/, 'the whole record, as the look-up held it');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'record-title', 'the focus goes along');
  await page.keyboard.press('Escape');
  await counts(by('record'), 0);
  assert.equal(
    await page.evaluate(() => document.activeElement?.getAttribute('data-testid')),
    'citation',
    'and comes back',
  );
  await says(by('source').first(), /^1\s*Building the Fram, 1891–1892$/);
  await leave();
});

test('every suggestion does what it promises', async () => {
  const promises = [
    async ({ answer }) => says(await answer(), /Colin Archer/),
    async ({ by }) => by('confirm-approve').waitFor(),
    async ({ by }) => by('voice-accept').waitFor(),
  ];
  for (const [place, isKept] of promises.entries()) {
    const user = await openPage(browser, deck);
    await user.by('suggestion').nth(place).click();
    await isKept(user);
    await user.leave();
  }
});

test('a call shows its arguments, its gates and its outcome when it is unfolded', async () => {
  const { by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  const card = by('tool-card').first();
  await has(card, 'open', null, 'folded by default');
  await says(card.locator('.tool-state'), /^done · (\d|under)/);
  await card.locator('summary').click();
  await card.locator('.gates').waitFor();
  const body = card.locator('.tool-body');
  await says(body, /query\s+Who designed the Fram\?/);
  await says(body, /budget\s+passed/);
  await says(body, /"id": "project:building-of-fram"/);
  await leave();
});

test('a meeting is booked after the user approves, not before', async () => {
  const user = await openPage(browser, deck);
  const { by, say, answer, leave } = user;
  await say('Book a meeting tomorrow at 10:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  await says(by('confirm-card'), /Book “Meeting with ann@example.com” from tomorrow 10:00/);
  await says(by('confirm-countdown'), /^\d:\d\d left$/);
  await says(by('confirm-card'), /attendees\s+\["ann@example.com"\]/, 'the exact arguments');
  assert.equal(await booked(user, 10), false);

  await by('confirm-approve').click();
  await says(await answer(), /is booked for/);
  await says(by('confirm-title'), 'Approved and done.');
  await counts(by('message'), 2, 'the same message goes on');
  assert.equal(await booked(user, 10), true);
  await leave();
});

test('what is denied does not happen', async () => {
  const user = await openPage(browser, deck);
  const { by, say, answer, leave } = user;
  await say('Book a meeting tomorrow at 12:00 with ann@example.com');
  await by('confirm-deny').click();
  await says(await answer(), /Denied. Nothing was done./);
  await says(by('tool-card').locator('.tool-state'), /denied/);
  assert.equal(await booked(user, 12), false);
  await leave();
});

test('a suggestion chosen by keyboard moves the focus to the composer', async () => {
  const { page, by, answer, leave } = await openPage(browser, deck);
  await by('suggestion').first().focus();
  await page.keyboard.press('Enter');
  await answer();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'composer');
  await leave();
});

test('a double click approves once', async () => {
  const { page, by, say, answer, leave } = await openPage(browser, deck);
  await say('Book a meeting tomorrow at 14:00 with ann@example.com');
  const approvals = [];
  page.on('request', (request) => request.postData()?.includes('approval-responded') && approvals.push(request));
  await page.locator('[data-testid=confirm-approve]:enabled').waitFor();
  // Both before anything could have come of the first.
  await by('confirm-approve').evaluate((button) => {
    button.click();
    button.click();
  });
  await says(await answer(), /is booked for/);
  assert.equal(approvals.length, 1);
  await counts(by('error'), 0);
  await leave();
});

test('the conversation is there after the page is loaded again, and so is an open question', async () => {
  const { page, by, ask, say, answer, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await say('Book a meeting tomorrow at 16:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  await page.reload();
  await by('confirm-approve').waitFor();
  await says(by('message').nth(1), /Colin Archer/);
  await by('tool-card').first().locator('summary').click();
  await says(by('tool-card').first().locator('.gates'), /budget\s+passed/);
  await by('citation').first().click();
  await by('record').waitFor();
  await page.keyboard.press('Escape');
  await by('confirm-approve').click();
  await says(await answer(), /is booked for/);
  await leave();
});

test('a question is still open after something else was said and the page was loaded again', async () => {
  const user = await openPage(browser, deck);
  const { page, by, ask, say, answer, leave } = user;
  await say('Book a meeting tomorrow at 17:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  await ask('Who designed the Fram?');
  await page.reload();
  await says(by('tool-card').first().locator('.tool-state'), 'needs approval');
  await by('confirm-approve').click();
  await answer();
  await says(by('confirm-title'), 'Approved and done.');
  assert.equal(await booked(user, 17), true);
  await page.reload();
  await says(by('tool-card').first().locator('.tool-state'), /^done/);
  await counts(by('confirm-card'), 0);
  await leave();
});

test('stopping after an approval still shows the outcome', async () => {
  const user = await openPage(browser, deck);
  const { page, by, say, leave } = user;
  await say('Book a meeting tomorrow at 19:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  let arrived = () => {};
  const heard = new Promise((resolve) => (arrived = resolve));
  // The server hears it; its answer is still on the way when the user stops.
  const late = async (route) => arrived(await route.fetch());
  await page.route('**/api/chat', late, { times: 1 });
  await by('confirm-approve').click();
  await heard;
  await by('send').click();
  await says(by('tool-card').locator('.tool-state'), /^done/);
  await counts(by('confirm-approve'), 0);
  assert.equal(await booked(user, 19), true);
  await leave();
});

test('an offer to talk is there after the page is loaded again', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('I want to talk by voice about the Fram');
  const offered = await by('voice-offer').innerText();
  await page.reload();
  await says(by('voice-offer'), offered);
  await leave();
});

test('each tab has a conversation of its own', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  const other = await page.context().newPage();
  await other.goto(deck.url);
  await counts(other.getByTestId('message'), 2, 'a new tab begins where the last one is');
  await other.getByTestId('new-chat').click();
  await other.getByTestId('composer').fill('What is the weather like?');
  await other.getByTestId('send').click();
  await says(other.getByTestId('message').first(), /weather/);
  await page.reload();
  await other.reload();
  await says(other.getByTestId('message').first(), /weather/);
  await counts(by('message'), 2, 'what is left in one is not ended in the other');
  await counts(by('message').filter({ hasText: 'weather' }), 0);
  await leave();
});

test('a new chat begins with nothing, also after the page is loaded again', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck);
  await ask('Who designed the Fram?');
  await by('new-chat').click();
  await by('welcome').waitFor();
  await page.reload();
  await by('welcome').waitFor();
  await counts(by('message'), 0);
  await leave();
});

test('an insult after a warning leads to a block with a countdown, which a reload does not lift', async () => {
  const { page, by, ask, say, leave } = await openPage(browser, deck, { expects: [/403/] });
  await ask('You are an idiot');
  await say('Shut up, you stupid idiot');
  await by('block-countdown').waitFor();
  await says(by('block-countdown'), /^[45]:\d\d$/);
  await says(by('block-reason'), /stay polite/);
  await says(by('block-lift'), /your own server.*quarterdeck blocks lift c_/s, 'it was made on loopback');
  assert.equal(await by('composer').isVisible(), false);
  assert.equal(await page.getByRole('button', { name: 'Latest' }).isVisible(), false, 'the end stays in view');
  const before = await seconds(by);
  await page.reload();
  await by('block-countdown').waitFor();
  await says(by('block-reason'), /stay polite/);
  const left = await seconds(by);
  assert.ok(left <= before && left > before - 60, `${before} s, then ${left} s`);
  await leave();
});

async function seconds(by) {
  const [minutes, rest] = (await by('block-countdown').innerText()).split(':').map(Number);
  return minutes * 60 + rest;
}

/** Whether the calendar has something tomorrow at an hour, as another user is told. */
async function booked({ page }, hour) {
  const response = await page.request.post(`${deck.url}/api/chat`, {
    data: { message: `Am I free tomorrow between ${hour}:00 and ${hour + 1}:00?` },
  });
  const outcome = (await response.text()).match(/"existing_events":(\[[^\]]*\])/);
  assert.ok(outcome, 'the calendar was looked at');
  return outcome[1] !== '[]';
}
