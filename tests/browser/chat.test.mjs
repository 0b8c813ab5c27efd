// The page with the built-in rehearsal: what a newcomer sees and does.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, visit } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';

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

test('a newcomer reads what this is and who answers', async () => {
  const { page, by, leave } = await visit(browser, deck);
  assert.match(await by('welcome').innerText(), /by text or by voice/);
  assert.equal(await by('suggestion').count(), 3);
  assert.match(await by('provider').innerText(), /Rehearsal, no language model/);
  await by('provider').click();
  assert.match(await by('provider-more').innerText(), /rehearsal\/built-in/);
  assert.match(await by('provider-more').innerText(), /GEMINI_API_KEY/);
  assert.equal(await page.title(), 'Quarterdeck');
  await leave();
});

test('a question is answered with sources that can be opened', async () => {
  const { page, by, answer, leave } = await visit(browser, deck);
  await by('suggestion').first().click();
  const said = await answer();
  assert.match(await said.innerText(), /Colin Archer/);
  assert.deepEqual(await by('tool-card').locator('.tool-name').allInnerTexts(), ['kb_search', 'kb_get']);

  await by('citation').first().click();
  assert.equal(await by('record').getByRole('heading').first().innerText(), 'Building the Fram, 1891–1892');
  assert.match(await by('record').innerText(), /project:building-of-fram/);
  assert.match(await by('record').innerText(), /well-seasoned oak/, 'the whole record, as the look-up held it');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'record-title', 'the focus goes along');
  await page.keyboard.press('Escape');
  assert.equal(await by('record').count(), 0);
  assert.equal(
    await page.evaluate(() => document.activeElement?.getAttribute('data-testid')),
    'citation',
    'and comes back',
  );
  assert.match(await by('source').first().innerText(), /^1\s*Building the Fram, 1891–1892$/);
  await leave();
});

test('a call shows its arguments, its gates and its outcome when it is unfolded', async () => {
  const { by, ask, leave } = await visit(browser, deck);
  await ask('Who designed the Fram?');
  const card = by('tool-card').first();
  assert.equal(await card.getAttribute('open'), null, 'folded by default');
  assert.match(await card.locator('.tool-state').innerText(), /^done · (\d|under)/);
  await card.locator('summary').click();
  await card.locator('.gates').waitFor();
  const body = await card.locator('.tool-body').innerText();
  assert.match(body, /query\s+Who designed the Fram\?/);
  assert.match(body, /budget\s+passed/);
  assert.match(body, /"id": "project:building-of-fram"/);
  await leave();
});

test('a meeting is booked after the person has approved, and not before', async () => {
  const visitor = await visit(browser, deck);
  const { by, say, answer, leave } = visitor;
  await say('Book a meeting tomorrow at 10:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  assert.match(await by('confirm-card').innerText(), /Book “Meeting with ann@example.com” from .*, 10:00/);
  assert.match(await by('confirm-countdown').innerText(), /^\d:\d\d left$/);
  assert.match(await by('confirm-card').innerText(), /attendees\s+\["ann@example.com"\]/, 'the exact arguments');
  assert.equal(await booked(visitor, 10), false);

  await by('confirm-approve').click();
  assert.match(await (await answer()).innerText(), /is booked for/);
  assert.equal(await by('confirm-title').innerText(), 'Approved and done.');
  assert.equal(await by('message').count(), 2, 'the same message goes on');
  assert.equal(await booked(visitor, 10), true);
  await leave();
});

test('what is denied does not happen', async () => {
  const visitor = await visit(browser, deck);
  const { by, say, answer, leave } = visitor;
  await say('Book a meeting tomorrow at 12:00 with ann@example.com');
  await by('confirm-deny').click();
  assert.match(await (await answer()).innerText(), /Denied. Nothing was done./);
  assert.match(await by('tool-card').locator('.tool-state').innerText(), /denied/);
  assert.equal(await booked(visitor, 12), false);
  await leave();
});

test('a double click approves once', async () => {
  const { page, by, say, answer, leave } = await visit(browser, deck);
  await say('Book a meeting tomorrow at 14:00 with ann@example.com');
  const approvals = [];
  page.on('request', (request) => request.postData()?.includes('approval-responded') && approvals.push(request));
  // Both before anything could have come of the first.
  await by('confirm-approve').evaluate((button) => {
    button.click();
    button.click();
  });
  assert.match(await (await answer()).innerText(), /is booked for/);
  assert.equal(approvals.length, 1);
  assert.equal(await by('trouble').count(), 0);
  await leave();
});

test('the conversation is there after the page is loaded again, and so is an open question', async () => {
  const { page, by, ask, say, answer, leave } = await visit(browser, deck);
  await ask('Who designed the Fram?');
  await say('Book a meeting tomorrow at 16:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  await page.reload();
  await by('confirm-approve').waitFor();
  assert.match(await by('message').nth(1).innerText(), /Colin Archer/);
  await by('citation').first().click();
  await by('record').waitFor();
  await page.keyboard.press('Escape');
  await by('confirm-approve').click();
  assert.match(await (await answer()).innerText(), /is booked for/);
  await leave();
});

test('a new chat begins with nothing, also after the page is loaded again', async () => {
  const { page, by, ask, leave } = await visit(browser, deck);
  await ask('Who designed the Fram?');
  await by('new-chat').click();
  await by('welcome').waitFor();
  await page.reload();
  await by('welcome').waitFor();
  assert.equal(await by('message').count(), 0);
  await leave();
});

test('an insult after a warning leads to a block with a countdown, which a reload does not lift', async () => {
  const { page, by, ask, say, leave } = await visit(browser, deck, { expects: [/403/] });
  await ask('You are an idiot');
  await say('Shut up, you stupid idiot');
  await by('block-countdown').waitFor();
  assert.match(await by('block-countdown').innerText(), /^[45]:\d\d$/);
  assert.match(await by('block-reason').innerText(), /stay polite/);
  assert.equal(await by('composer').isVisible(), false);
  assert.equal(await page.getByRole('button', { name: 'Latest' }).isVisible(), false, 'the end stays in view');
  const before = await seconds(by);
  await page.reload();
  await by('block-countdown').waitFor();
  assert.match(await by('block-reason').innerText(), /stay polite/);
  const left = await seconds(by);
  assert.ok(left <= before && left > before - 60, `${before} s, then ${left} s`);
  await leave();
});

async function seconds(by) {
  const [minutes, rest] = (await by('block-countdown').innerText()).split(':').map(Number);
  return minutes * 60 + rest;
}

/** Whether the calendar has something tomorrow at an hour, as another visitor is told. */
async function booked({ page }, hour) {
  const response = await page.request.post(`${deck.url}/api/chat`, {
    data: { message: `Am I free tomorrow between ${hour}:00 and ${hour + 1}:00?` },
  });
  const outcome = (await response.text()).match(/"existing_events":(\[[^\]]*\])/);
  assert.ok(outcome, 'the calendar was looked at');
  return outcome[1] !== '[]';
}
