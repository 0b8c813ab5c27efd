// A provider that misbehaves: whatever it does, the user gets a clear message in time and can continue.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { textOf, toolsOf, visit } from './support/chat.mjs';
import { behind, startDeck } from './support/deck.mjs';
import { startPuppet } from './support/puppet.mjs';
import { misdeeds } from './support/stubborn.mjs';

const TIMEOUT = 2;
/** A time-out for each try, the pauses between, and some slack. */
const MAX_WAIT_MS = 12_000;

let deck;
let puppet;

before(async () => {
  puppet = await startPuppet(misdeeds);
  deck = await startDeck(behind(puppet.url, {
    QUARTERDECK_TEXT__FIRST_BYTE_SECONDS: `${TIMEOUT}`,
    QUARTERDECK_TEXT__IDLE_SECONDS: `${TIMEOUT}`,
  }));
});

after(async () => {
  const ended = await deck?.stop();
  await puppet?.stop();
  assert.equal(ended, 0, 'the server stops cleanly');
});

/** What the user is told when the provider misbehaves. */
const failures = [
  ['drop', 'drops the connection in mid-stream', 'TRANSIENT', /cut off/],
  ['vanish', 'drops the connection at once', 'TRANSIENT', /cannot be reached|cut off/],
  ['trail', 'ends without an end', 'TRANSIENT', /cut off/],
  ['limit', 'wants to be left alone for an hour', 'RATE_LIMIT', /rate-limited/],
  ['break', 'is broken', 'TRANSIENT', /trouble/],
  ['key', 'does not like our key', 'AUTH', /refuses our key/],
  ['garbage', 'sends garbage', 'TRANSIENT', /cannot be read/],
  ['page', 'sends a page', 'TRANSIENT', /cannot be read|cut off/],
  ['flood', 'sends a line without end', 'TRANSIENT', /cannot be read/],
  ['silent', 'never answers', 'TRANSIENT', /in time/],
  ['stall', 'falls silent', 'TRANSIENT', /in time/],
  ['empty', 'says nothing', 'TRANSIENT', /no answer/],
];

for (const [order, what, type, words] of failures) {
  test(`a provider that ${what}`, async () => {
    const { chat, say } = visit(deck);
    await say('say hello');
    const begun = Date.now();
    await say(order);
    const took = Date.now() - begun;
    assert.equal(chat.status, 'error');
    const error = JSON.parse(chat.error.message);
    assert.equal(error.type, type);
    assert.match(error.message, words);
    assert.equal(error.retryable, type !== 'AUTH');
    assert.doesNotMatch(chat.error.message, /sk-|127\.0\.0\.1|puppet/, 'nothing of the inside is told');
    assert.ok(took < MAX_WAIT_MS, `it took ${took} ms`);

    chat.clearError();
    assert.equal(textOf(await say('say on we go')), 'on we go', 'the conversation goes on');
  });
}

test('a provider that calls a tool that is not there', async () => {
  const { chat, say } = visit(deck);
  const answer = await say('unknown');
  assert.equal(chat.status, 'ready');
  const [tool] = toolsOf(answer);
  assert.equal(tool.state, 'output-error');
  assert.match(tool.errorText, /launch_rocket/);
  assert.match(textOf(answer), /Results: .*NOT_FOUND/, 'the model is told and can go on');
  assert.equal(textOf(await say('say on we go')), 'on we go');
});

test('a provider whose arguments are cut short', async () => {
  const { chat, say } = visit(deck);
  const answer = await say('cut');
  assert.equal(chat.status, 'ready');
  assert.equal(toolsOf(answer)[0].state, 'output-error');
  assert.match(textOf(answer), /Results: .*VALIDATION/, 'the model is told; nothing ran with no arguments');
  assert.equal(textOf(await say('say on we go')), 'on we go');
});

test('a provider that makes forty calls at once', async () => {
  const { chat, say } = visit(deck);
  const begun = Date.now();
  const answer = await say('forty');
  assert.equal(chat.status, 'ready');
  const tools = toolsOf(answer);
  assert.equal(tools.length, 40);
  assert.equal(tools.filter((tool) => tool.state === 'output-available').length, 5, 'as many searches as a turn may have');
  const refused = tools.filter((tool) => tool.state === 'output-error');
  assert.equal(refused.length, 35, 'every call has an answer');
  assert.match(refused[0].errorText, /\S/);
  assert.match(textOf(answer), /Results: .*BUDGET_EXCEEDED/);
  assert.ok(Date.now() - begun < MAX_WAIT_MS);
  assert.equal(textOf(await say('say on we go')), 'on we go');
});

test('a provider that calls without end is asked for words in the last round', async () => {
  const { again } = misdeeds;
  const insists = await startPuppet({ again, afterResults: again });
  const short = await startDeck(behind(insists.url, { QUARTERDECK_TEXT__ROUNDS: '3' }));
  try {
    const { chat, say } = visit(short);
    await say('again');
    const choices = insists.requests.map(({ body }) => body.tool_choice ?? 'auto');
    assert.deepEqual(choices, ['auto', 'auto', 'none']);
    assert.match(JSON.parse(chat.error.message).message, /no answer/);
    chat.clearError();
    assert.equal(textOf(await say('say on we go')), 'on we go');
  } finally {
    await short.stop();
    await insists.stop();
  }
});
