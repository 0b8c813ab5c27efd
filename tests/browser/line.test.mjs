// The page's end of a call, against a server that is played here: what a server may do that ours does rarely.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TIMEOUT_MS, startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { speak } from './support/microphone.mjs';
import { counts, says, soon } from './support/soon.mjs';

let deck;
let browser;
let microphone;

before(async () => {
  microphone = speak([1, 'Hello there, can you hear me?']);
  [deck, browser] = await Promise.all([startDeck(), startBrowser({ microphone: microphone.file })]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  microphone?.remove();
});

const ready = {
  type: 'ready',
  sessionId: 'ses_1',
  resumeToken: 'token-1',
  resumed: false,
  toolsVersion: '1',
  provider: 'played',
};
/** So many seconds of a tone, as the server sends them. */
const tone = (seconds) =>
  Buffer.from(Int16Array.from({ length: 24_000 * seconds }, (_, at) => 8_000 * Math.sin(at / 12)).buffer);

/** A user who is in a call with us. */
async function inCall(options = {}) {
  const { before = () => {}, ...settings } = options;
  const user = await openPage(browser, deck, settings);
  await user.page.evaluate(before);
  const calls = [];
  await user.page.routeWebSocket(/\/voice$/, (socket) => {
    const call = { socket, heard: [], audio: 0, loudest: 0, tell: (message) => socket.send(JSON.stringify(message)) };
    calls.push(call);
    socket.onMessage((message) => {
      if (typeof message !== 'string') {
        call.audio += message.length;
        call.loudest = Math.max(call.loudest, ...new Int16Array(Uint8Array.from(message).buffer));
        return;
      }
      call.heard.push(JSON.parse(message));
      if (call.heard.at(-1).type === 'start')
        call.tell({ ...ready, resumed: call.heard.at(-1).resumeToken === 'token-1' });
    });
  });
  await user.by('voice-start').click();
  const state = (text) => user.by('voice-state').filter({ hasText: text }).waitFor();
  await state('Listening');
  const until = async (holds, what) => {
    for (const end = Date.now() + TIMEOUT_MS; !holds();) {
      assert.ok(Date.now() < end, `timed out: ${what}`);
      await user.page.waitForTimeout(20);
    }
  };
  return { ...user, calls, state, until };
}

test('audio is played to its end, and then reported as heard', async () => {
  const {
    calls: [call],
    state,
    until,
    leave,
  } = await inCall();
  call.socket.send(tone(0.6));
  await state('Speaking');
  assert.equal(
    call.heard.some((message) => message.type === 'playback'),
    false,
    'not before it was heard',
  );
  await until(() => call.heard.some((message) => message.state === 'drained'), 'drained');
  await state('Listening');
  await leave();
});

test('the end of a block is taken as a number and as a text', async () => {
  const {
    calls: [call],
    by,
    leave,
  } = await inCall();
  const block = { type: 'timeout', farewellMessage: 'Let us take a break.' };
  call.tell({ ...block, durationSeconds: 125, timeoutUntil: Date.now() + 125_000 });
  await says(by('block-countdown'), /^(2:0\d|1:5\d)$/);
  call.tell({ ...block, durationSeconds: 3_725, timeoutUntil: new Date(Date.now() + 3_725_000).toISOString() });
  await says(by('block-countdown'), /^1:0[12]:\d\d$/);
  await leave();
});

test('a word shorter than what is gathered before playing is heard too', async () => {
  const {
    calls: [call],
    until,
    leave,
  } = await inCall();
  call.socket.send(tone(0.04));
  await until(() => call.heard.some((message) => message.state === 'drained'), 'drained');
  await leave();
});

test('a browser that does not resample is helped out, at the same pace', async () => {
  const before = () => {
    const Whole = AudioContext;
    globalThis.AudioContext = class extends Whole {
      constructor(options) {
        if (options?.sampleRate === 16_000) throw new DOMException('no such rate', 'NotSupportedError');
        super(options);
      }
    };
  };
  const {
    page,
    calls: [call],
    until,
    leave,
  } = await inCall({ before });
  await until(() => call.audio > 0, 'the microphone');
  const [began, sent] = [Date.now(), call.audio];
  await page.waitForTimeout(2_000);
  const pace = (call.audio - sent) / (Date.now() - began);
  assert.ok(pace > 24 && pace < 40, `${pace} bytes in a millisecond, of 32`);
  assert.ok(call.loudest > 1_000, 'and it is not silence');
  await leave();
});

test('an interruption silences at once', async () => {
  const {
    page,
    by,
    calls: [call],
    state,
    leave,
  } = await inCall();
  call.tell({ type: 'transcript', role: 'assistant', text: 'A long story', final: true });
  call.socket.send(tone(20));
  await state('Speaking');
  call.tell({ type: 'interrupted' });
  const began = Date.now();
  await state('Listening');
  assert.ok(Date.now() - began < 5_000, `${Date.now() - began} ms of the 20 seconds that were to be heard`);
  await page.waitForTimeout(300);
  assert.equal(await by('voice-state').innerText(), 'Listening', 'and nothing of it comes back');
  await leave();
});

test('who silences the agent does not hear what was on its way', async () => {
  const {
    page,
    by,
    calls: [call],
    state,
    until,
    leave,
  } = await inCall();
  call.socket.send(tone(5));
  await state('Speaking');
  await by('voice-interrupt').click();
  await until(() => call.heard.some((message) => message.type === 'interrupt'), 'interrupt');
  call.socket.send(tone(5));
  await page.waitForTimeout(400);
  assert.equal(await by('voice-state').innerText(), 'Listening');
  call.tell({ type: 'interrupted' });
  call.socket.send(tone(1));
  await state('Speaking');
  await leave();
});

test('captions grow by what stands, and guesses are replaced', async () => {
  const {
    by,
    calls: [call],
    leave,
  } = await inCall();
  const says = (role, text, final) => call.tell({ type: 'transcript', role, text, final });
  says('user', 'Who design', false);
  says('user', 'Who designed', false);
  await by('caption')
    .filter({ hasText: /^Who designed$/ })
    .waitFor();
  says('user', 'Who designed the ', true);
  says('user', 'From', false);
  says('user', 'Fram?', true);
  await by('caption')
    .filter({ hasText: /^Who designed the Fram\?$/ })
    .waitFor();
  says('assistant', 'Colin ', true);
  says('assistant', 'Archer.', true);
  await by('caption')
    .filter({ hasText: /^Colin Archer\.$/ })
    .waitFor();
  call.tell({ type: 'turn_complete' });
  says('assistant', 'Anything else?', true);
  await by('caption').nth(2).waitFor();
  await counts(by('caption'), 3);
  await leave();
});

test('the agent is said to think for as long as it owes something, and no longer', async () => {
  const {
    by,
    calls: [call],
    state,
    leave,
  } = await inCall();
  const asks = (more = {}) => call.tell({ type: 'transcript', role: 'user', text: 'Why?', final: true, ...more });
  asks();
  await state('Thinking');
  call.tell({ type: 'turn_complete' });
  await state('Listening');
  asks({ late: true });
  await counts(by('caption').filter({ hasText: 'Why?' }), 2);
  assert.match(await by('voice-state').innerText(), /Listening/, 'words of a turn that is over ask for nothing');
  call.tell({ type: 'tool_call', callId: 'c1', name: 'kb_search', args: { query: 'x' } });
  await state('Running a tool');
  call.tell({ type: 'interrupted' });
  const error = { type: 'CANCELLED', message: 'Interrupted.', retryable: false };
  call.tell({ type: 'tool_result', callId: 'c1', ok: false, duration: 1, error });
  await state('Listening');
  await leave();
});

test('the level meter follows the microphone and the agent', async () => {
  const {
    page,
    by,
    calls: [call],
    state,
    leave,
  } = await inCall();
  const level = () =>
    page.evaluate(() => Number(document.querySelector('#call [style*="--level"]').style.getPropertyValue('--level')));
  call.socket.send(tone(5));
  await state('Speaking');
  await soon(async () => assert.ok((await level()) > 0.05, 'a tone is seen'));
  call.tell({ type: 'interrupted' });
  await by('voice-mute').click();
  await state('Muted');
  await soon(async () => assert.equal(await level(), 0, 'and silence is not'));
  await leave();
});

test('calls are shown as they go, and a question is answered on the line', async () => {
  const {
    by,
    calls: [call],
    state,
    until,
    leave,
  } = await inCall();
  call.tell({ type: 'tool_call', callId: 'c1', name: 'calendar_create_event', args: { title: 'Tea' } });
  await state('Running a tool');
  call.tell({ type: 'progress', callId: 'c1', text: 'still looking' });
  await by('tool-card').filter({ hasText: 'still looking' }).waitFor();
  const question = {
    callId: 'c1',
    token: 'qdc_1',
    tool: 'calendar_create_event',
    args: { title: 'Tea' },
    preview: 'Book “Tea”',
    expires: Date.now() + 60_000,
  };
  call.tell({ type: 'confirmation_request', ...question });
  await by('confirm-approve').click();
  await until(() => call.heard.some((message) => message.type === 'confirm'), 'confirm');
  assert.deepEqual(
    call.heard.find((message) => message.type === 'confirm'),
    { type: 'confirm', token: 'qdc_1', approve: true },
  );
  call.tell({ type: 'tool_result', callId: 'c1', ok: true, duration: 12 });
  await by('confirm-title').filter({ hasText: 'Approved and done.' }).waitFor();
  await by('tool-card').filter({ hasText: 'done · 12 ms' }).waitFor();
  call.tell({ type: 'tool_call', callId: 'c2', name: 'kb_search', args: { query: 'x' } });
  call.tell({
    type: 'tool_result',
    callId: 'c2',
    ok: false,
    duration: 0,
    error: { type: 'BUDGET_EXCEEDED', message: 'No more.', retryable: false },
  });
  await by('tool-card').filter({ hasText: 'refused' }).waitFor();
  await leave();
});

const question = {
  type: 'confirmation_request',
  callId: 'c1',
  token: 'qdc_1',
  tool: 'calendar_create_event',
  args: { title: 'Tea' },
  preview: 'Book “Tea”',
  expires: Date.now() + 600_000,
};
/** What the model is told while the user decides. */
const waiting = {
  type: 'tool_result',
  callId: 'c1',
  ok: false,
  duration: 1,
  error: { type: 'CONFIRMATION_REQUIRED', message: 'The user is asked.', retryable: false },
  gates: [{ gate: 'confirmation', verdict: 'asked' }],
};
const tea = { type: 'tool_call', callId: 'c1', name: 'calendar_create_event', args: { title: 'Tea' } };

for (const [order, told] of [
  ['before', [question, waiting]],
  ['after', [waiting, question]],
]) {
  test(`a question put ${order} the model is told to wait stays open`, async () => {
    const {
      by,
      calls: [call],
      until,
      leave,
    } = await inCall();
    for (const message of [tea, ...told]) call.tell(message);
    call.tell({ type: 'transcript', role: 'assistant', text: 'Please look at the page.', final: true });
    await by('caption').filter({ hasText: 'Please look at the page.' }).waitFor();
    await says(by('confirm-title'), 'Approve this call?');
    await says(by('tool-card').locator('.tool-state'), 'needs approval');
    await by('confirm-approve').click();
    await until(() => call.heard.some((message) => message.type === 'confirm'), 'confirm');
    call.tell({ type: 'tool_result', callId: 'c1', ok: true, duration: 12 });
    await says(by('confirm-title'), 'Approved and done.');
    await leave();
  });
}

test('a call that is approved with a code shows what to say until it is decided', async () => {
  const {
    by,
    calls: [call],
    leave,
  } = await inCall();
  for (const message of [tea, { ...question, confirmBy: 'code', code: '4170' }, waiting]) call.tell(message);
  await says(by('confirm-code'), '4 1 7 0');
  await says(by('confirm-card').locator('.confirm-code'), 'Or say: 4 1 7 0');
  // The code was said: the call runs without a click.
  call.tell({ type: 'tool_result', callId: 'c1', ok: true, duration: 12 });
  await says(by('confirm-title'), 'Approved and done.');
  await by('confirm-code').waitFor({ state: 'hidden' });

  for (const message of [{ ...tea, callId: 'c2' }, { ...question, callId: 'c2', token: 'qdc_2' }]) call.tell(message);
  await counts(by('confirm-card'), 2);
  await counts(by('confirm-code'), 1);
  await leave();
});

test('what was approved before the call ended is not said to be undone', async () => {
  const {
    by,
    calls: [call],
    until,
    leave,
  } = await inCall();
  for (const message of [tea, question, waiting]) call.tell(message);
  await by('confirm-approve').click();
  await until(() => call.heard.some((message) => message.type === 'confirm'), 'confirm');
  await by('voice-stop').click();
  await says(by('confirm-title'), 'Approved; the call ended before the outcome arrived.');
  await says(by('tool-card').locator('.tool-state'), 'outcome unknown');
  await leave();
});

test('a new chat during a call begins with nothing, and stays so', async () => {
  const {
    page,
    by,
    calls: [call],
    until,
    leave,
  } = await inCall();
  call.tell({ type: 'transcript', role: 'assistant', text: 'A long story', final: true });
  await by('caption').waitFor();
  await by('new-chat').click();
  await by('welcome').waitFor();
  await until(() => call.heard.some((message) => message.type === 'stop'), 'stop');
  await by('voice-start').waitFor();
  await counts(by('caption'), 0);
  await page.reload();
  await by('welcome').waitFor();
  await counts(by('caption'), 0);
  await leave();
});

test('leaving the page during a call keeps the transcript and notes the end', async () => {
  const {
    page,
    by,
    calls: [call],
    leave,
  } = await inCall();
  call.tell({ type: 'transcript', role: 'user', text: 'Who designed the Fram?', final: true });
  call.tell({ type: 'transcript', role: 'assistant', text: 'Colin Archer, who', final: true });
  await by('caption').nth(1).waitFor();
  await page.reload();
  await says(by('caption').nth(1), 'Colin Archer, who');
  await says(by('caption').nth(2), 'The call ended when the page was closed.');
  await leave();
});

test('a call that is refused says what the server said', async () => {
  const { page, by, leave } = await openPage(browser, deck);
  const error = { type: 'UNAVAILABLE', message: 'You are in a call already. End it first.', retryable: false };
  await page.routeWebSocket(/\/voice$/, (socket) => {
    socket.send(JSON.stringify({ type: 'error', error }));
    void socket.close({ code: 1008 });
  });
  await by('voice-start').click();
  await says(by('notice'), error.message);
  await page.waitForTimeout(300);
  assert.equal(await by('notice').innerText(), error.message, 'and nothing else, when the line is closed');
  await leave();
});

test('the half-duplex option mutes the microphone while the agent speaks', async () => {
  const {
    page,
    by,
    calls: [call],
    state,
    until,
    leave,
  } = await inCall();
  await until(() => call.audio > 640 * 5, 'the microphone');
  await by('voice-half-duplex').check();
  call.socket.send(tone(3));
  await state('Speaking');
  // What was on its way arrives first.
  await page.waitForTimeout(300);
  const sent = call.audio;
  await page.waitForTimeout(400);
  assert.ok(call.audio - sent <= 640 * 3, `${call.audio - sent} bytes`);
  call.tell({ type: 'interrupted' });
  await until(() => call.audio - sent > 640 * 10, 'the microphone again');
  await leave();
});

test('a server that goes away is called again with what it gave us', async () => {
  const { page, calls, until, leave } = await inCall();
  calls[0].tell({ type: 'going_away', inMs: 100 });
  await page.getByText('The server is restarting.').waitFor();
  await calls[0].socket.close({ code: 1001 });
  await until(() => calls[1]?.heard.length > 0, 'another call');
  const [start] = calls[1].heard;
  assert.equal(start.sessionId, 'ses_1');
  assert.equal(start.resumeToken, 'token-1');
  await page.getByText('Call resumed.').waitFor();
  await leave();
});

test('a call that goes on elsewhere is left alone', async () => {
  const { page, by, calls, leave } = await inCall();
  await calls[0].socket.close({ code: 4001 });
  await page.getByText('The call continues in another window.').waitFor();
  await by('voice-start').waitFor();
  await page.waitForTimeout(500);
  assert.equal(calls.length, 1);
  await leave();
});

test('the end of a call brings its words back to the chat', async () => {
  const {
    by,
    calls: [call],
    leave,
  } = await inCall();
  call.tell({ type: 'error', error: { type: 'TRANSIENT', message: 'The model hesitates.', retryable: true } });
  await by('notice').filter({ hasText: 'The model hesitates.' }).waitFor();
  call.tell({
    type: 'session_end',
    reason: 'user_requested',
    closingMessage: 'Bye',
    textResponse: 'Here is the **list** that you asked for.',
  });
  await by('caption').filter({ hasText: 'Here is the list that you asked for.' }).waitFor();
  await by('voice-start').waitFor();
  await leave();
});

test('a call that understands typed text only works without a microphone', async () => {
  const deaf = await startBrowser();
  try {
    const { by, say, leave } = await openPage(deaf, deck);
    await by('voice-start').click();
    await says(by('notice'), 'No microphone. Type into the call.');
    await by('voice-state').filter({ hasText: 'Type to it' }).waitFor();
    await says(by('voice-about'), /does not hear yet/);
    await say('Who designed the Fram?');
    await by('caption').filter({ hasText: 'Colin Archer' }).waitFor();
    await by('voice-stop').click();
    await by('voice-start').waitFor();
    await leave();
  } finally {
    await deaf.close();
  }
});

test('a missing microphone and an unreachable server show a notice', async () => {
  const deaf = await startBrowser();
  try {
    const { page, by, leave } = await openPage(deaf, deck);
    // A model that hears wants to hear something.
    await page.route('**/api/me', async (route) => {
      const response = await route.fetch();
      const me = await response.json();
      await route.fulfill({ response, json: { ...me, voice: { model: 'a model', isRehearsal: false, speaks: true, hears: true } } });
    });
    await page.reload();
    await by('provider').waitFor();
    await by('voice-start').click();
    await by('notice')
      .filter({ hasText: /microphone/i })
      .waitFor();
    await by('voice-start').waitFor();
    await leave();
  } finally {
    await deaf.close();
  }
  const { page, by, leave } = await openPage(browser, deck, { expects: [/WebSocket/] });
  await page.routeWebSocket(/\/voice$/, (socket) => void socket.close({ code: 1013 }));
  await by('voice-start').click();
  await by('notice').filter({ hasText: 'no capacity for another call' }).waitFor();
  await leave();
});
