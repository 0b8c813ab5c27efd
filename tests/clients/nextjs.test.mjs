// The Next.js example, built and started as its README says, in a browser: a page of another origin than the server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startDeck, until } from './support/deck.mjs';
import { load } from './support/packages.mjs';

const { chromium } = (await load('playwright-core')).default;
const app = process.env.DECK_NEXTJS;
const TIMEOUT_MS = 60_000;
let deck;
let site;
let browser;

before(async () => {
  // Nothing is configured: a server on this machine takes pages on this machine.
  deck = await startDeck({ QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' });
  site = await startNext({ QUARTERDECK_URL: deck.url });
  browser = await chromium.launch({
    executablePath: process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'],
  });
});

after(async () => {
  await browser?.close();
  site?.stop();
  await deck?.stop();
});

/** Starts the app that was built, on a free port. */
async function startNext(settings) {
  const program = join(app, 'node_modules/next/dist/bin/next');
  const child = spawn(process.execPath, [program, 'start', '--port', '0', '--hostname', '127.0.0.1'], {
    cwd: app,
    env: { ...process.env, ...settings, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  const url = await new Promise((resolve, reject) => {
    const slow = setTimeout(() => reject(new Error(`the app did not start\n${log}`)), TIMEOUT_MS);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (piece) => {
        log += piece;
        const found = /(http:\/\/[\w.]+:\d+)[\s\S]*Ready/.exec(log);
        if (!found) return;
        clearTimeout(slow);
        resolve(found[1]);
      });
    }
    child.on('exit', (code) => reject(new Error(`the app ended with ${code}\n${log}`)));
  });
  return { url, stop: () => child.kill() };
}

/** A new visitor. What goes wrong in the page fails the test that closes it. */
async function visit() {
  const context = await browser.newContext({ timezoneId: 'UTC' });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && !/favicon/.test(message.location().url) && faults.push(message.text()));
  await page.goto(site.url);
  return {
    page,
    async say(text) {
      await page.getByLabel('Your message').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
    },
    call: (name, state) => page.locator(`.call[data-state=${state}]`).filter({ hasText: name }),
    async leave() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

test('the example answers with the tools of the server', async () => {
  const { page, say, call, leave } = await visit();
  await say('Who designed the Fram?');
  await page.getByText('Colin Archer').first().waitFor();
  await call('kb_search', 'output-available').first().waitFor();
  await leave();
});

test('the example asks before it writes, and what is approved is done', async () => {
  const { page, say, call, leave } = await visit();
  const requests = [];
  page.on('request', (request) => request.url() === `${deck.url}/api/chat` && requests.push(request));
  await say('Book a meeting tomorrow at 10:00 with ann@example.com');
  const question = page.getByRole('group', { name: 'Approval needed' });
  await question.waitFor();
  assert.match(await question.innerText(), /ann@example\.com/, 'the exact arguments are shown');
  await page.getByRole('button', { name: 'Approve' }).click();
  await call('calendar_create_event', 'output-available').waitFor();
  const headers = await Promise.all(requests.map((request) => request.allHeaders()));
  const posted = headers.filter((header) => 'content-type' in header);
  assert.ok(posted.length >= 2 && posted.at(-1)['x-quarterdeck-session'], 'the token says whose decision it is');
  assert.ok(posted.every((header) => !header.cookie), 'and no cookie does');
  await leave();
});

test('the example does not do what is denied', async () => {
  const { page, say, call, leave } = await visit();
  await say('Book a meeting tomorrow at 12:00 with ben@example.com');
  await page.getByRole('button', { name: 'Deny' }).click();
  await call('calendar_create_event', 'output-denied').waitFor();
  await leave();
});

test('the voice button of the example talks to the agent', async () => {
  const { page, leave } = await visit();
  const sent = { frames: 0, bytes: new Set() };
  let heard = 0;
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => typeof payload !== 'string' && (sent.frames += 1) && sent.bytes.add(payload.length));
    socket.on('framereceived', ({ payload }) => typeof payload !== 'string' && (heard += payload.length));
  });
  await page.getByRole('button', { name: 'Talk' }).click();
  await page.locator('.voice[data-state=listening]').waitFor();
  // The browser's own microphone beeps, which the simulator takes for speech.
  await page.locator('.voice p[data-role=user]').first().waitFor();
  await page.locator('.voice p:not([data-role=user])').first().waitFor();
  await until(() => heard > 0 && sent.frames > 10, 'audio goes both ways', TIMEOUT_MS);
  assert.deepEqual([...sent.bytes], [640], 'frames of 20 ms');
  await page.getByRole('button', { name: 'Hang up' }).click();
  await page.getByRole('button', { name: 'Talk' }).waitFor();
  await leave();
});
