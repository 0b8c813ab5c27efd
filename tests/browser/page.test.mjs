// The page's files: how heavy they are, how soon something is seen, and what they may do.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';

/** The most that the page may weigh. */
const MAX_PAGE_BYTES = 200_000;
/** Latest first paint for a new client. */
const FIRST_PAINT_MS = 100;
/** On a machine that others use at the same time, a bare word is late as well: how many times later the page may be. */
const TIMES_LATER = 3;

let deck;
let browser;

before(async () => {
  [deck, browser] = await Promise.all([startDeck(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
});

test('the page is light and comes from here alone', async (test) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const responses = [];
  page.on('response', (response) => responses.push(response));
  await page.goto(deck.url, { waitUntil: 'networkidle' });
  const sizes = await Promise.all(responses.map(async (response) => (await response.body()).length));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(bytes < MAX_PAGE_BYTES, `${bytes} bytes`);
  assert.deepEqual(
    responses.filter((response) => !response.url().startsWith(deck.url)),
    [],
  );
  assert.deepEqual(
    responses.filter((response) => response.status() >= 400),
    [],
  );

  test.diagnostic(`${bytes} bytes in ${responses.length} answers`);

  await context.close();
});

test('the page is seen at once', async (test) => {
  const [bare, paints] = [[], []];
  await paintOf('/'); // The browser and the server have a first time too.
  for (let user = 0; user < 9; user += 1) {
    bare.push(await paintOf('/healthz'));
    paints.push(await paintOf('/'));
  }
  const figures = `first paint after ${paints} ms, of a bare word after ${bare} ms`;
  test.diagnostic(figures);
  assert.ok(median(paints) < Math.max(FIRST_PAINT_MS, median(bare) * TIMES_LATER), figures);
});

test('a page that was loaded before asks for one thing, which has not changed', async () => {
  const { page, leave } = await openPage(browser, deck);
  const names = [];
  page.on('requestfinished', async (request) => {
    const sizes = await request.sizes().catch(() => null);
    if (sizes && sizes.responseBodySize > 0) names.push(new URL(request.url()).pathname);
  });
  await page.reload({ waitUntil: 'networkidle' });
  assert.deepEqual(
    names.filter((name) => name.startsWith('/web/')),
    [],
    'files are kept',
  );
  await leave();
});

test('files say what they are, and how long they are good for', async () => {
  const get = (path, headers = {}) => fetch(`${deck.url}${path}`, { headers });
  const page = await get('/');
  const html = await page.text();
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(page.headers.get('cache-control'), 'no-cache');
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
  assert.match(page.headers.get('permissions-policy'), /microphone=\(self\)/);
  const policy = page.headers.get('content-security-policy');
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self' 'sha256-[\w+/]{43}='; /);
  assert.doesNotMatch(policy, /unsafe/);
  assert.doesNotMatch(html, /<script>|style="|onclick=/);
  const again = await get('/', { 'if-none-match': page.headers.get('etag') });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), '');

  const [path] = html.match(/\/web\/\w+\/page\/main\.js/);
  const script = await get(path);
  assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8');
  assert.match(script.headers.get('cache-control'), /immutable/);
  assert.equal((await get(path, { 'if-none-match': script.headers.get('etag') })).status, 304);
  const old = await get('/web/0/page/main.js');
  assert.equal(old.headers.get('cache-control'), 'no-cache', 'a page from before an upgrade still works');
  assert.equal((await get('/web/0/page/no-such.js')).status, 404);
  assert.equal((await get('/web/0/..%2f..%2fCargo.toml')).status, 404);
});

const median = (figures) => figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)];

/** When a browser that knows nothing of us has painted something. */
async function paintOf(path) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${deck.url}${path}`);
  const paint = await page.evaluate(firstPaint);
  await context.close();
  return Math.round(paint);
}

function firstPaint() {
  return new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      const [entry] = list.getEntriesByName('first-contentful-paint');
      if (entry) resolve(entry.startTime);
    });
    observer.observe({ type: 'paint', buffered: true });
  });
}
