// The page while the server goes away and comes back.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { behind } from '../clients/support/deck.mjs';
import { startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, visit } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';

let deck;
let browser;
let puppet;
/** Browsers report every attempt in vain. */
const expects = [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|503/];

before(async () => {
  puppet = await startPuppet();
  [deck, browser] = await Promise.all([startDeck(behind(puppet.url)), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  await puppet?.stop();
});

test('a server that dies in the middle of an answer is waited for, and the page says so', async () => {
  const { page, by, ask, say, answer, leave } = await visit(browser, deck, { expects });
  await ask('say before');
  await say('slowly');
  await page.getByText('word word').waitFor();
  await deck.kill();
  await page.getByText('The connection was lost. Trying again…').waitFor();
  await deck.start();
  await page.getByText('Connected again.').waitFor();
  await by('trouble').waitFor();
  assert.match(await by('trouble').innerText(), /broke off/);
  assert.equal(await by('message').count(), 4, 'the message was not said twice');
  assert.match(await (await ask('say after')).innerText(), /after/);

  await page.reload();
  await page.locator('#messages').getByText('after', { exact: true }).waitFor();
  assert.match(await by('message').nth(1).innerText(), /before/);
  await answer();
  await leave();
});

test('what is said while the server is away is delivered when it is back', async () => {
  const { page, by, ask, say, leave } = await visit(browser, deck, { expects });
  await ask('say before');
  await deck.stop();
  await say('count');
  await page.getByText('The connection was lost. Trying again…').waitFor();
  await deck.start();
  await page.locator('#messages').getByText('You have said 2 things.').waitFor();
  assert.equal(await by('message').count(), 4);
  assert.equal(await by('trouble').count(), 0);
  await leave();
});
