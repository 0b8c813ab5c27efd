// The page with a model that does what it is told: what models do that rehearsal never does.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { booking } from '../clients/support/calendar.mjs';
import { behind } from '../clients/support/deck.mjs';
import { say as send, startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, has, says, soon } from './support/soon.mjs';

let deck;
let browser;
let puppet;

before(async () => {
  puppet = await startPuppet({
    table: (response) =>
      send(response, 'Two ships:\n| Ship | Built |\n|---|:-:|\n| Fram | **1892** |\nGjøa \\| sloop | 1872\n\nThat is all.'),
    refuse: (response) => response.writeHead(400).end('{"error":{"message":"no such model"}}'),
  });
  [deck, browser] = await Promise.all([startDeck(behind(puppet.url)), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  await puppet?.stop();
});

test('who answers is named', async () => {
  const { by, leave } = await openPage(browser, deck);
  await says(by('provider'), /openai\/puppet/);
  await leave();
});

test('what a model writes is text, whatever it looks like', async () => {
  const { page, ask, leave } = await openPage(browser, deck);
  const said = await ask(
    'say <img src=x onerror=alert(1)> **bold** `code` [out](https://example.com/a_(b)) [in](javascript:alert(1)) [no:record]',
  );
  await counts(said.locator('img, script'), 0);
  await says(said, /<img src=x onerror=alert\(1\)> bold code out in no:record/);
  await says(said.locator('strong'), 'bold');
  const links = said.locator('a');
  await counts(links, 1, 'only what leads to the web is a link');
  await has(links, 'href', 'https://example.com/a_(b)');
  await has(links, 'rel', 'noopener noreferrer');
  assert.equal(await page.evaluate(() => document.querySelectorAll('[onerror]').length), 0);
  await leave();
});

test('an unanswered confirmation expires and does nothing', async (t) => {
  const hasty = await startDeck(behind(puppet.url, { QUARTERDECK_POLICY__CONFIRMATION_SECONDS: '3' }));
  t.after(() => hasty.remove());
  const { by, say, ask, leave } = await openPage(browser, hasty);
  await say(booking(1));
  await by('confirm-approve').waitFor();
  await by('confirm-approve').waitFor({ state: 'hidden' });
  await says(by('confirm-title'), /^Expired. Nothing was done/);
  await says(by('tool-card').locator('.tool-state'), 'expired');
  await says(await ask('say on we go'), /on we go/);
  await leave();
});

test('refusals are explained in plain words', async () => {
  const { by, ask, leave } = await openPage(browser, deck);
  const searches = ['a', 'b', 'c', 'd', 'e', 'f'].map((query) => `call kb_search {"query":"${query}"}`);
  await ask(searches.join('\n'));
  const last = by('tool-card').nth(5);
  await says(last.locator('.tool-state'), /^refused/);
  await last.locator('summary').click();
  await says(last.locator('.tool-body'), /reached its limit of tool calls/);
  await says(last.locator('.gate[data-verdict=refused]'), /budget/);
  await leave();
});

test('a model that fails is explained, and can be asked again', async () => {
  const { by, ask, answer, leave } = await openPage(browser, deck);
  await ask('refuse');
  await says(by('error'), /does not accept our request/);
  await counts(by('retry'), 0, 'what will not help is not offered');
  await says(await ask('say better now'), /better now/);
  await answer();
  await leave();
});

test('a message that is refused at the door is explained, and delivered when it is asked for again', async () => {
  const { page, by, say, answer, leave } = await openPage(browser, deck, { expects: [/429/] });
  const error = { type: 'RATE_LIMIT', message: 'You write faster than we can read.', retryable: true };
  await page.route('**/api/chat', (route) => route.fulfill({ status: 429, json: { error } }), { times: 1 });
  await say('say at last');
  await says(by('error'), /Wait and try again/);
  await by('retry').click();
  await says(await answer(), /at last/);
  await counts(by('message'), 2);
  await leave();
});

test('a word that was not heard can be given again', async () => {
  const { page, by, say, answer, leave } = await openPage(browser, deck, { expects: [/409/] });
  await say(booking(3));
  const error = { type: 'CONFLICT', message: 'You are in a call.', retryable: true };
  await by('confirm-deny').waitFor();
  await page.route('**/api/chat', (route) => route.fulfill({ status: 409, json: { error } }), { times: 1 });
  await by('confirm-deny').click();
  await by('error').filter({ hasText: 'You are in a call.' }).waitFor();
  await by('confirm-deny').click();
  await by('confirm-title').filter({ hasText: 'Denied' }).waitFor();
  await answer();
  await leave();
});

test('a table is one', async () => {
  const { ask, leave } = await openPage(browser, deck);
  const said = await ask('table');
  await says(said.locator('p').first(), 'Two ships:');
  assert.deepEqual(await said.locator('tr').evaluateAll((rows) => rows.map((row) => row.innerText)), [
    'Ship\tBuilt',
    'Fram\t1892',
    'Gjøa | sloop\t1872',
  ]);
  await says(said.locator('td strong'), '1892');
  await says(said.locator('p').last(), 'That is all.');
  await leave();
});

test('a decision that is made while another answer is written is sent when that one is complete', async () => {
  const { page, by, say, answer, leave } = await openPage(browser, deck);
  await say(booking(4));
  await by('confirm-approve').waitFor();
  await answer();
  const decisions = [];
  page.on('request', (request) => request.postData()?.includes('approval-responded') && decisions.push(request));
  await say('slowly');
  await page.locator('[data-testid=send][aria-label=Stop]').waitFor();
  await by('confirm-deny').click();
  await says(by('confirm-title'), 'Denied.');
  assert.equal(decisions.length, 0, 'the answer is still written');
  await by('send').click();
  await says(by('confirm-title'), 'Denied. Nothing was done.');
  assert.equal(decisions.length, 1);
  await leave();
});

test('what is opened at the end stays under the hand, and a long question is read from its beginning', async () => {
  const { page, by, ask, say, leave } = await openPage(browser, deck, { viewport: { width: 340, height: 420 } });
  for (let line = 0; line < 5; line += 1) await ask(`say line ${line}`);
  await ask('call kb_search {"query":"fram"}');
  const card = by('tool-card').last().locator('summary');
  // What the puppet says of the results is long: to the end of the card, which the reader then follows.
  await card.evaluate((summary) => {
    summary.closest('qd-message').querySelector('.words').remove();
    document.querySelector('#scroll').scrollTo(0, 1e6);
  });
  const top = () => card.evaluate((summary) => Math.round(summary.getBoundingClientRect().top));
  const before = await top();
  await card.click();
  await page.locator('.tool-body pre').waitFor();
  await page.waitForTimeout(300);
  assert.equal(await top(), before);
  const attendees = Array.from({ length: 40 }, (_, place) => `guest-${place}@example.com`);
  const long = booking(5).replace('["ann@example.com"]', JSON.stringify(attendees));
  await say(long);
  await by('confirm-approve').waitFor();
  const seen = () =>
    by('confirm-title').evaluate((title) => {
      const scroller = document.querySelector('#scroll').getBoundingClientRect();
      const { top, bottom } = title.getBoundingClientRect();
      return top >= scroller.top && bottom <= scroller.bottom;
    });
  await soon(async () => assert.equal(await seen(), true, 'the heading is in view'));
  await leave();
});

test('a conversation is scrolled by keyboard', async () => {
  const { page, by, ask, leave } = await openPage(browser, deck, { viewport: { width: 700, height: 420 } });
  for (let line = 0; line < 8; line += 1) await ask(`say line ${line}`);
  const top = () => page.evaluate(() => document.querySelector('#scroll').scrollTop);
  const end = await top();
  await by('composer').focus();
  await page.keyboard.press('PageUp');
  await soon(async () => assert.ok((await top()) < end, 'from where one writes'));
  await page.getByRole('button', { name: 'Latest' }).click();
  await soon(async () => assert.ok((await top()) >= end));
  await page.locator('#scroll').focus();
  await page.keyboard.press('Home');
  await soon(async () => assert.equal(await top(), 0, 'and from the conversation itself'));
  await leave();
});

test('what is too long to paste is said to be', async () => {
  const { page, by, leave } = await openPage(browser, deck);
  await by('composer').evaluate((composer) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', 'x'.repeat(100_001));
    composer.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }));
  });
  await page.getByText('its end was cut').waitFor();
  await leave();
});

test('an answer that was cut off by leaving is said to be, and can be asked for again', async () => {
  const { page, by, say, leave } = await openPage(browser, deck);
  await say('slowly');
  await page.getByText('word word').waitFor();
  const chat = await page.evaluate(() => sessionStorage.getItem('quarterdeck.chat'));
  await page.goto('about:blank');
  await soon(async () => {
    const kept = await (await page.request.get(`${deck.url}/api/sessions/${chat}`)).json();
    assert.equal(kept.isRunning, false);
  });
  await page.goto(deck.url);
  await says(by('note'), /^The answer was stopped\./);
  await by('retry').click();
  await page.locator('qd-message[data-state=open] .words').waitFor();
  await counts(by('message'), 2);
  await by('send').click();
  await leave();
});

test('scrolling up stops following the end, and the end is followed otherwise', async () => {
  const { page, by, ask, say, leave } = await openPage(browser, deck, { viewport: { width: 700, height: 420 } });
  for (let line = 0; line < 8; line += 1) await ask(`say line ${line}`);
  await say('slowly');
  await page.locator('qd-message[data-state=open] .words').waitFor();
  const scroll = () =>
    page.evaluate(() => {
      const { scrollTop, scrollHeight, clientHeight } = document.querySelector('#scroll');
      return { top: scrollTop, left: scrollHeight - scrollTop - clientHeight };
    });
  assert.ok((await scroll()).left < 2, 'at the end');
  await page.evaluate(() => document.querySelector('#scroll').scrollTo(0, 60));
  await page.getByRole('button', { name: 'Latest' }).waitFor();
  const before = await page.locator('qd-message').last().innerText();
  await page.waitForFunction(
    (text) => document.querySelector('qd-message:last-child').innerText.length > text.length + 60,
    before,
  );
  assert.equal((await scroll()).top, 60, 'nothing has moved');
  await page.getByRole('button', { name: 'Latest' }).click();
  await page.waitForTimeout(300);
  assert.ok((await scroll()).left < 30, 'and at the end again');
  await by('send').click();
  await page.getByText('Stopped.').waitFor();
  await leave();
});

test('the keyboard is enough', async () => {
  const { page, answer, leave } = await openPage(browser, deck);
  await page.keyboard.type('say typed');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('say a second line');
  await page.keyboard.press('Enter');
  await says(await answer(), /a second line/);
  await page.keyboard.type(booking(2));
  await page.keyboard.press('Enter');
  const deny = page.getByTestId('confirm-deny');
  await deny.waitFor();
  // Backwards from the composer stands what came last.
  for (let step = 0; step < 6 && !(await deny.evaluate((button) => button === document.activeElement)); step += 1) {
    await page.keyboard.press('Shift+Tab');
  }
  await page.keyboard.press('Enter');
  await answer();
  await says(page.getByTestId('confirm-title'), /Denied/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'composer', 'the focus goes on where one writes');
  await leave();
});
