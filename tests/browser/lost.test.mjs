// The page while the server goes away and comes back.

import { after, before, test } from 'node:test';
import { behind } from '../clients/support/deck.mjs';
import { startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, says } from './support/soon.mjs';

let deck;
let browser;
let puppet;
/** Browsers log every failed attempt. */
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
  const { page, by, ask, say, answer, leave } = await openPage(browser, deck, { expects });
  await ask('say before');
  await say('slowly');
  await page.getByText('word word').waitFor();
  await deck.kill();
  await page.getByText('Connection lost. Reconnecting…').waitFor();
  await deck.start();
  await page.getByText('Reconnected.').waitFor();
  await by('error').waitFor();
  await says(by('error'), /broke off/);
  await counts(by('message'), 4, 'the message was not said twice');
  await says(await ask('say after'), /after/);

  await page.reload();
  await page.locator('#messages').getByText('after', { exact: true }).waitFor();
  await says(by('message').nth(1), /before/);
  await answer();
  await leave();
});

test('what is said while the server is away is delivered when it is back', async () => {
  const { page, by, ask, say, leave } = await openPage(browser, deck, { expects });
  await ask('say before');
  await deck.stop();
  await say('count');
  await page.getByText('Connection lost. Reconnecting…').waitFor();
  await deck.start();
  await page.locator('#messages').getByText('You have said 2 things.').waitFor();
  await counts(by('message'), 4);
  await counts(by('error'), 0);
  await leave();
});
