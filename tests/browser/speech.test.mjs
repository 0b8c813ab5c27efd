// Calls on a server that has no voice: the browser speaks what the agent says.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { says, soon } from './support/soon.mjs';

let deck;
let browser;

before(async () => {
  // Without a path there is no synthesiser to be found.
  [deck, browser] = await Promise.all([
    startDeck({ PATH: '/nowhere', QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' }),
    startBrowser(),
  ]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
});

/** Stands in for the browser's speech, which a test cannot hear: says what was begun, ended and cut off. */
function standIn({ voices, milliseconds }) {
  const speech = { begun: [], ended: [], cut: [] };
  const queue = [];
  let current = null;
  const next = () => {
    current = queue.shift() ?? null;
    if (!current) return;
    const utterance = current;
    speech.begun.push(utterance.text);
    utterance.timer = setTimeout(() => {
      speech.ended.push(utterance.text);
      current = null;
      utterance.onend?.({});
      next();
    }, milliseconds);
  };
  const synthesis = new EventTarget();
  Object.assign(synthesis, {
    getVoices: () => voices,
    speak(utterance) {
      queue.push(utterance);
      if (!current) next();
    },
    cancel() {
      const cut = current;
      queue.length = 0;
      current = null;
      if (!cut) return;
      clearTimeout(cut.timer);
      speech.cut.push(cut.text);
      // Browsers say it later.
      setTimeout(() => cut.onerror?.({ error: 'interrupted' }), 50);
    },
  });
  globalThis.speech = speech;
  globalThis.asked = 0;
  globalThis.SpeechSynthesisUtterance = class {
    constructor(text) {
      this.text = text;
    }
  };
  Object.defineProperty(globalThis, 'speechSynthesis', { value: synthesis });
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = (...given) => {
    globalThis.asked += 1;
    return ask(...given);
  };
}

/** A user in a call, and what goes over their line. */
async function caller(stand) {
  const user = await openPage(browser, deck);
  const { page, by } = user;
  const line = { sent: [], told: [], loudest: 0, audio: 0 };
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => typeof payload === 'string' && line.sent.push(JSON.parse(payload)));
    socket.on('framereceived', ({ payload }) => {
      if (typeof payload === 'string') return line.told.push(JSON.parse(payload));
      line.audio += payload.length;
      line.loudest = Math.max(line.loudest, ...payload);
    });
  });
  if (stand) {
    await page.addInitScript(standIn, stand);
    await page.reload();
    await by('provider').waitFor();
  }
  await by('voice-start').click();
  const state = (text) => by('voice-state').filter({ hasText: text }).waitFor();
  await state('Type to it');
  const speech = () => page.evaluate(() => globalThis.speech);
  return { ...user, line, state, speech };
}

const one = [{ name: 'One', lang: 'en' }];

test('the browser speaks where the server has no voice, and nothing hums', async () => {
  const { page, by, say, line, state, speech, leave } = await caller({ voices: one, milliseconds: 1_500 });
  assert.equal(line.told.find((message) => message.type === 'ready').speaks, false);
  await says(by('voice-about'), /does not hear yet.*Your browser speaks its answers/);
  assert.equal(await page.evaluate(() => globalThis.asked), 0, 'who does not hear asks for no microphone');
  assert.equal(await by('voice-mute').isVisible(), false);

  await say('Who designed the Fram?');
  await state('Speaking');
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  await soon(async () => assert.match((await speech()).ended.join(' '), /Colin Archer/));
  await state('Type to it');
  await soon(() => assert.ok(line.sent.some((message) => message.state === 'drained'), 'what was heard is reported'));
  const { begun } = await speech();
  assert.doesNotMatch(begun.join(' '), /[*_`#]|\[\S+\/\S+\]/, 'neither marks nor ids are read out');
  assert.ok(begun.every((text) => !/[.!?]\s+\p{Lu}/u.test(text.replace(/\b\p{L}\.\s/gu, ''))), `one sentence at a time: ${begun.join(' | ')}`);
  assert.ok(line.audio > 0, 'the audio keeps time');
  assert.equal(line.loudest, 0, 'and is silent');
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  await leave();
});

for (const [how, cut] of [
  ['the button', ({ by }) => by('voice-interrupt').click()],
  ['the escape key', ({ page }) => page.keyboard.press('Escape')],
  ['another question', ({ say }) => say('What is dead water?')],
]) {
  test(`speech is cut off at once by ${how}, and the transcript remains`, async () => {
    const user = await caller({ voices: one, milliseconds: 60_000 });
    const { by, say, line, state, speech, leave } = user;
    await say('Who designed the Fram?');
    await state('Speaking');
    const answer = by('caption').filter({ hasText: 'Colin Archer' });
    await answer.waitFor();
    await cut(user);
    await soon(async () => assert.equal((await speech()).cut.length, 1));
    assert.equal((await speech()).ended.length, 0, 'nothing of the rest is spoken');
    await answer.waitFor();
    const isTold = line.sent.some(({ type, text }) => type === 'interrupt' || /dead water/.test(text ?? ''));
    assert.ok(isTold, 'the server knows');
    await by('voice-stop').click();
    await by('voice-start').waitFor();
    await leave();
  });
}

test('hanging up stops the speech', async () => {
  const { by, say, state, speech, leave } = await caller({ voices: one, milliseconds: 60_000 });
  await say('Who designed the Fram?');
  await state('Speaking');
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  assert.equal((await speech()).cut.length, 1);
  await leave();
});

test('a browser without a voice says so in words, and the call goes on in writing', async () => {
  const { by, say, line, speech, leave } = await caller({ voices: [], milliseconds: 10 });
  await says(by('voice-about'), /does not hear yet.*This browser has no voice/);
  await say('Who designed the Fram?');
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  await soon(() => assert.ok(line.sent.some((message) => message.state === 'drained')));
  assert.deepEqual((await speech()).begun, []);
  await say('Goodbye');
  await by('voice-start').waitFor();
  assert.ok(line.told.some((message) => message.type === 'session_end'), 'the agent can hang up');
  await leave();
});

test('the voices of this very browser are counted', async () => {
  const { page, by, leave } = await caller(null);
  assert.equal(await page.evaluate(() => typeof speechSynthesis.speak), 'function');
  const voices = await page.evaluate(() => speechSynthesis.getVoices().length);
  await says(by('voice-about'), voices > 0 ? /Your browser speaks/ : /has no voice/);
  await by('voice-stop').click();
  await by('voice-start').waitFor();
  await leave();
});
