// Calls from the page to the running server, with a voice in the microphone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { speak } from './support/microphone.mjs';
import { counts, has, says } from './support/soon.mjs';
import { startWire } from './support/wire.mjs';

let deck;
before(async () => {
  deck = await startDeck({ QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' });
});
after(() => deck?.remove());

/** A user whose microphone says these things, and what goes over their line. */
async function caller(test, sayings, options = {}) {
  const microphone = speak(...sayings);
  const browser = await startBrowser({ microphone: microphone.file });
  test.after(async () => {
    await browser.close();
    microphone.remove();
  });
  const user = await openPage(browser, options.deck ?? deck, options);
  const line = { sent: [], told: [], frames: [], audio: 0 };
  user.page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) =>
      typeof payload === 'string' ? line.sent.push(JSON.parse(payload)) : line.frames.push(payload.length),
    );
    socket.on('framereceived', ({ payload }) => {
      if (typeof payload === 'string') line.told.push(JSON.parse(payload));
      else line.audio += payload.length;
    });
  });
  const state = (text) => user.by('voice-state').filter({ hasText: text }).waitFor();
  return { ...user, line, state };
}

const types = (messages) => messages.map((message) => message.type);

test('a call is begun by the button, spoken to, interrupted by voice and hung up', async (test) => {
  const { by, ask, page, line, state, leave } = await caller(test, [
    [2, 'Who designed the Fram?'],
    [3.5, 'Stop, I have another question.'],
  ]);
  await by('voice-start').click();
  await state('Listening');
  await state('Speaking');
  await says(by('caption').first(), /speech/, 'what the user said is shown');
  await has(by('caption').first(), 'data-role', 'user');
  assert.equal(new Set(line.frames).size, 1);
  assert.equal(line.frames[0], 640, '20 ms of 16 kHz');

  // The second sentence comes while the agent speaks.
  await page.waitForFunction(() => document.querySelectorAll('[data-testid=caption][data-role=user]').length >= 2);
  assert.ok(types(line.told).includes('interrupted'));
  assert.ok(
    line.sent.some((message) => message.type === 'playback' && message.state === 'drained'),
    'silence is reported',
  );
  assert.ok(line.audio > 24_000, 'the agent was heard');

  await by('voice-stop').click();
  await by('voice-start').waitFor();
  assert.ok(types(line.sent).includes('stop'));
  await says(await ask('Who designed the Fram?'), /Colin Archer/, 'the chat goes on');
  await leave();
});

test('one can write into a call, silence it, and be muted', async (test) => {
  const { by, say, page, line, state, leave } = await caller(test, [[60, 'Nothing']]);
  await by('voice-start').click();
  await state('Listening');
  await say('Who designed the Fram?');
  await state('Speaking');
  await counts(by('tool-card'), 2);
  assert.deepEqual(await by('tool-card').locator('.tool-name').allInnerTexts(), ['kb_search', 'kb_get']);
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  assert.equal(line.sent.filter((message) => message.type === 'text').length, 1);

  await by('voice-interrupt').click();
  await state('Listening');
  await by('voice-mute').click();
  await state('Muted');
  // What was on its way arrives first.
  await page.waitForTimeout(300);
  const sent = line.frames.length;
  await page.waitForTimeout(400);
  assert.ok(line.frames.length - sent <= 2, 'nothing is sent while one is muted');
  await by('voice-mute').click();
  await state('Listening');

  await say('Goodbye');
  await by('voice-start').waitFor();
  assert.ok(types(line.told).includes('session_end'), 'the agent can hang up too');
  await says(by('notice'), /The call has ended/);
  await leave();
});

test('an offer of the agent is accepted with one click, and nothing has to be repeated', async (test) => {
  const { by, ask, line, state, leave } = await caller(test, [[60, 'Nothing']]);
  await ask('I want to talk by voice about the Fram');
  await by('voice-accept').click();
  await state('Speaking');
  const [start] = line.sent;
  assert.equal(start.type, 'start');
  assert.match(start.sessionId, /\S+/);
  assert.match(start.pendingRequest, /Fram/);
  const ready = line.told.find((message) => message.type === 'ready');
  assert.equal(ready.sessionId, start.sessionId, 'the session that was offered');
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  await leave();
});

test('a call whose connection is lost goes on by itself', async (test) => {
  const wire = await startWire(deck.url);
  test.after(() => wire.stop());
  const expects = [/WebSocket connection|ERR_/];
  const { by, page, say, line, state, leave } = await caller(test, [[60, 'Nothing']], { deck: wire, expects });
  await by('voice-start').click();
  await state('Listening');
  wire.cut();
  await page.getByText('Connection lost. Reconnecting…').waitFor();
  await page.getByText('Call resumed.').waitFor();
  const ready = line.told.filter((message) => message.type === 'ready');
  assert.equal(ready.length, 2);
  assert.equal(ready[1].resumed, true);
  assert.equal(ready[1].sessionId, ready[0].sessionId);
  await say('Who designed the Fram?');
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  await leave();
});

test('the chat is paused while a call is on in another window, and says so', async (test) => {
  const { page, by, state, leave } = await caller(test, [[60, 'Nothing']], { expects: [/409/] });
  await by('voice-start').click();
  await state('Listening');
  const other = await page.context().newPage();
  await other.goto(deck.url);
  await other.getByTestId('composer').fill('Who designed the Fram?');
  await other.getByTestId('send').click();
  await other.getByTestId('error').filter({ hasText: 'You are in a call' }).waitFor();
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  await other.getByTestId('retry').click();
  await other.getByTestId('message').filter({ hasText: 'Colin Archer' }).waitFor();
  await counts(other.getByTestId('message'), 2);
  await leave();
});

test('reloading the page ends a call and keeps its transcript', async (test) => {
  const { page, by, say, ask, state, leave } = await caller(test, [[60, 'Nothing']]);
  await ask('Who designed the Fram?');
  await by('voice-start').click();
  await state('Listening');
  await say('What is dead water?');
  await state('Speaking');
  await by('voice-interrupt').click();
  await state('Listening');
  await page.reload();
  await by('caption').first().filter({ hasText: 'What is dead water?' }).waitFor();
  await counts(by('message'), 2);
  await page.waitForTimeout(500);
  await says(await ask('Who designed the Fram?'), /Colin Archer/);
  await leave();
});

test('abuse ends a call with a block', async (test) => {
  const { by, say, state, leave } = await caller(test, [[60, 'Nothing']], { expects: [/403/] });
  await by('voice-start').click();
  await state('Listening');
  await say('You are an idiot');
  await by('caption').last().filter({ hasText: 'polite' }).waitFor();
  await say('Shut up, you stupid idiot');
  await by('block-countdown').waitFor();
  await says(by('block-countdown'), /^\d+:\d\d$/);
  // The agent says its last words first.
  await by('caption').last().filter({ hasText: 'take a break of five minutes' }).waitFor();
  await by('voice-stop').waitFor({ state: 'hidden' });
  await leave();
});
