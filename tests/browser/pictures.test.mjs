// Pictures of the page for the README. They are taken anew when UPDATE_SCREENSHOTS is 1, and otherwise have to be
// there.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';

const images = fileURLToPath(new URL('../../docs/images/', import.meta.url));

test('the pictures of the page are there', { timeout: 120_000 }, async () => {
  if (process.env.UPDATE_SCREENSHOTS === '1') await take();
  const names = ['page-light.png', 'page-dark.png', 'approval-asked.png', 'approval-given.png'];
  for (const name of names) assert.ok(existsSync(`${images}${name}`), name);
});

async function take() {
  mkdirSync(images, { recursive: true });
  const [deck, browser] = await Promise.all([startDeck(), startBrowser()]);
  try {
    for (const colorScheme of ['light', 'dark']) {
      const settings = {
        colorScheme,
        reducedMotion: 'reduce',
        viewport: { width: 1000, height: 980 },
        deviceScaleFactor: 1.5,
      };
      const { page, by, ask, say, leave } = await openPage(browser, deck, settings);
      await ask('Who designed the Fram?');
      await by('composer').blur();
      await say('Book a meeting tomorrow at 10:00 with ann@example.com');
      await by('confirm-approve').waitFor();
      await page.waitForTimeout(500);
      await page.screenshot({ path: `${images}page-${colorScheme}.png` });
      await leave();
    }
    await takeApproval(deck, browser);
  } finally {
    await browser.close();
    await deck.remove();
  }
}

/** The same booking, before and after its approval: what the README begins with. */
async function takeApproval(deck, browser) {
  const settings = { reducedMotion: 'reduce', viewport: { width: 560, height: 700 }, deviceScaleFactor: 1.5 };
  const { page, by, say, leave } = await openPage(browser, deck, settings);
  await say('Book a meeting tomorrow at 15:00 with ann@example.com');
  await by('confirm-approve').waitFor();
  await by('composer').blur();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${images}approval-asked.png` });
  await by('confirm-approve').click();
  await by('confirm-approve').waitFor({ state: 'hidden' });
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: `${images}approval-given.png` });
  await leave();
}
