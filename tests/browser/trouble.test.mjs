// A model that dies: what the page, the deck, the probe, the metrics and the OpenAI API say, and the model that stands in.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { behind, until } from '../clients/support/deck.mjs';
import { begin, delta, startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, openPage, TIMEOUT_MS } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, says } from './support/soon.mjs';

/** A provider's ways to fail, by the word that asks for them. */
const stunts = {
  overload: (response) => response.writeHead(500).end('{"error":{"message":"out of order"}}'),
  limit: (response) => response.writeHead(429, { 'retry-after': '27' }).end('{"error":{"message":"too many"}}'),
  cutoff: (response) => {
    begin(response);
    delta(response, { content: 'Well, ' });
    setTimeout(() => response.destroy(), 50);
  },
  // The first token never comes.
  sleep: (response) => begin(response),
};
const settings = { QUARTERDECK_TEXT__RETRIES: '0', QUARTERDECK_TEXT__FIRST_BYTE_SECONDS: '2' };
let deck;
let browser;
let puppet;

before(async () => {
  puppet = await startPuppet(stunts);
  [deck, browser] = await Promise.all([startDeck(behind(puppet.url, settings)), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
});

const get = async (path, to = deck) => (await fetch(`${to.url}${path}`)).json();

function complete(words, stream, to = deck) {
  return fetch(`${to.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: words }], stream }),
  });
}

/** Opens the deck and reads its card about the model. */
async function onDeck(check, to = deck) {
  const context = await browser.newContext();
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  await page.goto(`${to.url}/deck`);
  await page.getByTestId('glance').locator('dt').first().waitFor();
  await check(page.getByTestId('model-trouble'));
  await context.close();
}

for (const [order, kind, status, retryAfter, words] of [
  ['overload', 'overloaded', 503, '5', /it has trouble of its own/],
  ['limit', 'rate_limited', 429, '27', /it is rate-limited/],
  ['cutoff', 'cut', 502, '5', /its answer broke off/],
  ['sleep', 'silent', 503, '5', /it does not answer in time/],
]) {
  test(`a model whose answer is “${order}” is told of everywhere, until it answers`, async () => {
    const { by, ask, leave } = await openPage(browser, deck);
    await by('model-trouble').waitFor({ state: 'hidden' });
    await ask(order);
    await says(by('model-trouble'), words);
    await says(by('model-trouble'), /openai\/puppet has been failing since/);
    await onDeck(async (card) => {
      await says(card, /Model failing since/);
      await says(card, words);
    });
    const ready = await fetch(`${deck.url}/readyz`);
    const { degraded, reasons } = await ready.json();
    assert.deepEqual([ready.status, degraded], [200, true]);
    assert.match(reasons[0], new RegExp(`^model openai/puppet failing since .* \\(${kind}, \\d+ in a row\\)`));
    const model = (await get('/metrics')).models['openai/puppet'];
    assert.equal(model.isFailing, true);
    assert.ok(model.errors[kind] >= 1, JSON.stringify(model));
    const whole = await complete(order, false);
    assert.deepEqual([whole.status, whole.headers.get('retry-after')], [status, retryAfter]);
    const streamed = await complete(order, true);
    // An answer that has begun is broken off inside of its stream.
    assert.equal(streamed.status, order === 'cutoff' ? 200 : status);
    assert.match(await streamed.text(), /"error"/);
    await ask('say I am back');
    await by('model-trouble').waitFor({ state: 'hidden' });
    assert.deepEqual((await get('/readyz')).reasons, []);
    await onDeck((card) => counts(card, 0));
    await leave();
  });
}

test('a model of this machine that takes long to begin is said to be loading, until it begins', async () => {
  const slow = await startPuppet({
    load: (response) => {
      begin(response);
      setTimeout(() => {
        delta(response, { content: 'Loaded.' });
        response.end('data: [DONE]\n\n');
      }, 8_000);
    },
  });
  const own = await startDeck(behind(slow.url, {}));
  try {
    const { page, say, leave } = await openPage(browser, own);
    await say('load');
    const sign = page.getByText('The model is being loaded, or reads the conversation.');
    await sign.waitFor();
    await page.getByRole('article').getByText('Loaded.').waitFor();
    await counts(sign, 0);
    await leave();
  } finally {
    await own.remove();
  }
});

test('model servers of this machine are offered by name where the rehearsal is explained', async () => {
  const own = await startDeck();
  try {
    const { page, by, leave } = await openPage(browser, own);
    const variable = 'QUARTERDECK_TEXT__MODEL=ollama/qwen3:8b';
    const server = { name: 'Ollama', url: 'http://127.0.0.1:11434', models: ['qwen3:8b'], variable };
    await page.route('**/api/me', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), localServers: [server] } });
    });
    await page.reload();
    await page.locator('#provider').click();
    await says(by('local-server'), new RegExp(`^Ollama runs on this machine\\. Restart the server with ${variable} to use it\\.$`));
    await leave();
  } finally {
    await own.remove();
  }
});

test('a provider that dies is replaced once by the fallback, and that is said', async () => {
  const [first, second] = [await startPuppet(), await startPuppet()];
  const other = await startDeck(
    behind(first.url, {
      ...settings,
      QUARTERDECK_FALLBACK__PROVIDER: 'openai',
      QUARTERDECK_FALLBACK__BASE_URL: second.url,
      QUARTERDECK_FALLBACK__MODEL: 'understudy',
    }),
  );
  try {
    const { by, ask, leave } = await openPage(browser, other);
    await says(await ask('say I am the first'), /I am the first/);
    assert.equal(second.requests.length, 0);
    await first.stop();
    const answer = await ask('say I stand in');
    await says(answer, /openai\/understudy answers, because openai\/puppet failed: it cannot be reached\./);
    await says(answer, /I stand in/);
    assert.equal(second.requests.length, 1, 'once');
    assert.equal(second.requests[0].body.model, 'understudy');
    await says(by('model-trouble'), /openai\/puppet has been failing since .*openai\/understudy answers instead\./);
    await onDeck((card) => says(card, /openai\/understudy answers instead\./), other);
    assert.match((await get('/readyz', other)).reasons[0], /unreachable.*; openai\/understudy answers instead/);
    const { models } = await get('/metrics', other);
    assert.equal(models['openai/understudy'].stoodIn, 1);
    assert.deepEqual(models['openai/puppet'].errors, { unreachable: 1 });
    const whole = await complete('say I stand in again', false, other);
    assert.equal((await whole.json()).choices[0].message.content, 'I stand in again');
    await second.stop();
    const unanswered = await until(async () => {
      const answer = await complete('say nothing', true, other);
      return answer.status === 503 && answer;
    }, 'both are gone');
    assert.equal(unanswered.headers.get('retry-after'), '5');
    await leave();
  } finally {
    await other.remove();
  }
});
