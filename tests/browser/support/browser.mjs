// A browser with a page, and what a user does there.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const packages = process.env.BROWSER_PACKAGES;
if (!packages) throw new Error('BROWSER_PACKAGES is not set: run scripts/test-browser');

/** Where a package was installed. */
export const installed = (path) => join(packages, 'node_modules', path);

const { chromium } = await import(pathToFileURL(installed('playwright-core/index.mjs')));

/** Generous, because machines that build at the same time are slow. */
export const TIMEOUT_MS = 30_000;

/** A browser; `microphone` is the WAV file that is spoken into it, `flags` are more of its arguments. */
export function startBrowser({ microphone, flags = [] } = {}) {
  const fake = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];
  const voice = microphone ? [...fake, `--use-file-for-fake-audio-capture=${microphone}%noloop`] : [];
  return chromium.launch({
    executablePath: process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', ...voice, ...flags],
  });
}

/** A new user with the page open. Whatever goes wrong in the page fails the test that closes it. */
export function openPage(browser, deck, options = {}) {
  return openAt(browser, deck.url, 'provider', options);
}

/** A new user at an address, once something is there. */
export async function openAt(browser, url, awaited, options = {}) {
  const { expects = [], ...settings } = options;
  const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, timezoneId: 'UTC', ...settings });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  const by = (name) => page.getByTestId(name);
  const user = {
    page,
    by,
    /** Writes something and sends it. */
    async say(text) {
      await by('composer').fill(text);
      await by('send').click();
    },
    /** Waits until the agent has nothing more to say, and gives what it said last. */
    async answer() {
      await page.waitForSelector('[data-testid=send][aria-label=Send]');
      const last = page.locator('qd-message').last();
      await last.and(page.locator('[data-role=assistant][data-state=done]')).waitFor();
      return last;
    },
    async ask(text) {
      await user.say(text);
      return user.answer();
    },
    async leave() {
      await context.close();
      const unexpected = faults.filter((fault) => !expects.some((pattern) => pattern.test(fault)));
      assert.deepEqual(unexpected, [], 'the page has nothing to complain about');
    },
  };
  await page.goto(url);
  await by(awaited).waitFor();
  return user;
}
