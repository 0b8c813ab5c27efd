// How the page looks to a tester of accessibility, in each state and in both colour schemes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { installed, startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { speak } from './support/microphone.mjs';

const axe = readFileSync(installed('axe-core/axe.min.js'), 'utf8');
let deck;
let browser;
let microphone;

before(async () => {
  microphone = speak([60, 'Nothing']);
  [deck, browser] = await Promise.all([
    startDeck({ QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' }),
    startBrowser({ microphone: microphone.file }),
  ]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  microphone?.remove();
});

/** Serious accessibility violations that axe finds. */
async function faults(page, where) {
  // It is evaluated, not put into the page, so that the page's policy stays as it is.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => `${where}: ${id} ${node.target} ${node.failureSummary}`));
}

for (const colorScheme of ['light', 'dark']) {
  test(`the page has no serious accessibility violation, ${colorScheme}`, async () => {
    const user = await openPage(browser, deck, { colorScheme, reducedMotion: 'reduce', expects: [/403/] });
    const { page, by, ask, say } = user;
    const found = [];
    const look = async (where) => found.push(...(await faults(page, where)));
    await look('welcome');
    await ask('Who designed the Fram?');
    await by('tool-card').first().locator('summary').click();
    await by('tool-card').first().locator('.gates').waitFor();
    await look('an answer');
    await by('citation').first().click();
    await look('a record');
    await page.keyboard.press('Escape');
    await say('Book a meeting tomorrow at 10:00 with ann@example.com');
    await by('confirm-approve').waitFor();
    await look('a question');
    await by('confirm-deny').click();
    await user.answer();
    await ask('I want to talk by voice about the Fram');
    await look('an offer');
    await by('voice-accept').click();
    await by('voice-state').filter({ hasText: 'Speaking' }).waitFor();
    await look('a call');
    await by('voice-stop').click();
    await by('voice-start').waitFor();
    await by('provider').click();
    await look('who answers');
    await page.keyboard.press('Escape');
    await ask('You are an idiot');
    await say('Shut up, you stupid idiot');
    await by('block-countdown').waitFor();
    await look('a block');
    assert.deepEqual(found, []);
    await user.leave();
  });
}

test('a narrow screen has everything, and nothing sticks out', async () => {
  const { page, by, ask, say, leave } = await openPage(browser, deck, { viewport: { width: 340, height: 640 } });
  const sticksOut = () =>
    page.evaluate(
      () =>
        document.documentElement.scrollWidth > innerWidth ||
        document.querySelector('#scroll').scrollWidth > document.querySelector('#scroll').clientWidth,
    );
  assert.equal(await sticksOut(), false, 'welcome');
  await by('provider').click();
  assert.equal(await by('provider-more').evaluate((more) => more.scrollWidth > more.clientWidth), false, 'who answers');
  await page.keyboard.press('Escape');
  await ask('Who designed the Fram?');
  await by('tool-card').first().locator('summary').click();
  assert.equal(await sticksOut(), false, 'an answer');
  await say('Book a meeting tomorrow at 11:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  assert.equal(await sticksOut(), false, 'a question');
  await by('voice-start').click();
  await by('voice-stop').waitFor();
  assert.equal(await sticksOut(), false, 'a call');
  await leave();
});

test('an answer is read out once it is complete, not word by word', async () => {
  const { page, ask, leave } = await openPage(browser, deck);
  await page.evaluate(() => {
    globalThis.announced = [];
    new MutationObserver(() => globalThis.announced.push(document.querySelector('#announce').textContent)).observe(
      document.querySelector('#announce'),
      { childList: true, characterData: true, subtree: true },
    );
  });
  await ask('Who designed the Fram?');
  const announced = await page.evaluate(() => globalThis.announced);
  assert.equal(announced.length, 1, announced.join(' | '));
  assert.match(announced[0], /Colin Archer/);
  await leave();
});
