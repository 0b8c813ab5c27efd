// Google's own client and the provider that we simulate: it must not be able to tell.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from './support/deck.mjs';
import { load } from './support/packages.mjs';
import { startSimulator } from './support/simulator.mjs';

const { GoogleGenAI, Modality, Behavior, FunctionResponseScheduling, version } = await load('@google/genai');
const title = `with @google/genai ${version}: `;
const long = 'This answer goes on and on, about one thing and about another, and does not come to an end for a long time.';

/** Audio as a microphone gives it: 16 kHz, 20 ms at a time, a tone or silence. */
function audio(milliseconds, loudness) {
  const piece = Buffer.alloc(640);
  for (let sample = 0; sample < 320; sample += 1) {
    piece.writeInt16LE(Math.round(loudness * Math.sin((2 * Math.PI * 220 * sample) / 16_000)), 2 * sample);
  }
  return Array.from({ length: milliseconds / 20 }, () => piece.toString('base64'));
}

/** A conversation, and everything that has come in it. */
async function connect(simulator, config = {}) {
  const ai = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl: simulator.url } });
  const messages = [];
  let closed;
  const session = await ai.live.connect({
    model: 'gemini-3.8-live',
    config: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      sessionResumption: {},
      tools: [
        {
          functionDeclarations: [
            { name: 'look_up', behavior: Behavior.BLOCKING, parametersJsonSchema: { type: 'object' } },
            { name: 'slow', behavior: Behavior.NON_BLOCKING },
          ],
        },
      ],
      ...config,
    },
    callbacks: {
      onmessage: (message) => messages.push(message),
      onclose: (event) => {
        closed = { code: event.code, reason: event.reason };
      },
    },
  });
  const find = (has) => until(() => messages.find(has), `a message like ${has} in ${JSON.stringify(messages).slice(0, 2_000)}`, 15_000);
  return {
    session,
    messages,
    find,
    speak(milliseconds) {
      for (const data of [...audio(milliseconds, 5_000), ...audio(500, 0)]) {
        session.sendRealtimeInput({ audio: { data, mimeType: 'audio/pcm;rate=16000' } });
      }
    },
    /** Waits for the end of the turn that comes after so many others, and for its handle. */
    async turn(nth) {
      const isEnd = (message) => message.serverContent?.turnComplete;
      await until(() => messages.filter(isEnd).length >= nth, `the end of turn ${nth}`, 30_000);
    },
    handle: async () => {
      const message = await until(() => messages.findLast((it) => it.sessionResumptionUpdate), 'a handle');
      return message.sessionResumptionUpdate;
    },
    said: () => messages.map((message) => message.serverContent?.outputTranscription?.text ?? '').join(''),
    heard: () => messages.map((message) => message.serverContent?.inputTranscription?.text ?? '').join(''),
    calls: () => messages.flatMap((message) => message.toolCall?.functionCalls ?? []),
    bytes() {
      const parts = messages.flatMap((message) => message.serverContent?.modelTurn?.parts ?? []);
      const blobs = parts.map((part) => part.inlineData).filter(Boolean);
      assert.ok(blobs.every((blob) => blob.mimeType === 'audio/pcm;rate=24000'));
      return Buffer.concat(blobs.map((blob) => Buffer.from(blob.data, 'base64')));
    },
    closed: () => until(() => closed, 'the end of the connection', 15_000),
  };
}

let simulator;

/** Plays a scenario for one test; the report must be clean unless the test says otherwise. */
async function play(scenario, faults = []) {
  simulator = await startSimulator(scenario);
  return async () => {
    const { ended, log } = await simulator.stop();
    simulator = undefined;
    assert.deepEqual([...log.matchAll(/^fault: (.*)$/gm)].map((found) => found[1]), faults);
    assert.equal(ended, faults.length > 0 ? 1 : 0);
  };
}

after(() => simulator?.stop());

test(`${title}speech is heard and answered in audio and words`, async () => {
  const done = await play([
    { begins: 'speech', heard: ['What is ', 'the weather?'], steps: [{ say: 'It is raining in Oslo.' }] },
  ]);
  const talk = await connect(simulator);
  talk.speak(1_000);
  await talk.turn(1);
  assert.equal(talk.heard(), 'What is the weather?');
  assert.equal(talk.said(), 'It is raining in Oslo.');
  const samples = talk.bytes().length / 2;
  assert.ok(samples > 24_000 && samples < 120_000, `${samples} samples`);
  assert.ok(talk.messages.some((message) => message.serverContent?.generationComplete));
  const usage = talk.messages.find((message) => message.usageMetadata).usageMetadata;
  assert.ok(usage.totalTokenCount > 0 && usage.responseTokenCount > 0);
  talk.session.close();
  await talk.closed();
  await done();
});

test(`${title}calls are made and answered, several at once and without waiting`, async () => {
  const done = await play([
    {
      begins: 'text',
      steps: [
        { call: [{ name: 'look_up', args: { city: 'Oslo' } }, { name: 'look_up', args: { city: 'Rome' } }] },
        { say: 'Rain, and sun.' },
        { call: { name: 'slow' } },
        { say: 'One moment.' },
        { await: 'answers' },
        { say: 'Done.' },
      ],
    },
  ]);
  const talk = await connect(simulator);
  talk.session.sendRealtimeInput({ text: 'How is the weather?' });
  await talk.find((message) => message.toolCall);
  assert.deepEqual(talk.calls().map((call) => [call.name, call.args]), [
    ['look_up', { city: 'Oslo' }],
    ['look_up', { city: 'Rome' }],
  ]);
  const functionResponses = talk.calls().map(({ id, name }) => ({ id, name, response: { output: 'seen' } }));
  talk.session.sendToolResponse({ functionResponses });
  const { toolCall } = await talk.find((message) => message.toolCall?.functionCalls[0].name === 'slow');
  const answer = { id: toolCall.functionCalls[0].id, name: 'slow', response: { output: 'done' } };
  talk.session.sendToolResponse({
    functionResponses: [{ ...answer, scheduling: FunctionResponseScheduling.WHEN_IDLE }],
  });
  await talk.turn(1);
  assert.equal(talk.said(), 'Rain, and sun.One moment.Done.');
  talk.session.close();
  await done();
});

test(`${title}speech during an answer interrupts it and cancels its call`, async () => {
  const done = await play([
    {
      begins: 'start',
      interruption: 'cancel',
      steps: [{ call: { name: 'slow', id: 'call-1' } }, { say: long }, { expectInterruption: true }],
    },
    { begins: 'speech', heard: 'Stop.', steps: [{ say: 'All right.' }] },
  ]);
  const talk = await connect(simulator);
  await talk.find((message) => message.serverContent?.modelTurn);
  talk.speak(600);
  await talk.turn(2);
  const place = (has) => talk.messages.findIndex(has);
  const interrupted = place((message) => message.serverContent?.interrupted);
  const cancelled = place((message) => message.toolCallCancellation?.ids.includes('call-1'));
  const complete = place((message) => message.serverContent?.turnComplete);
  assert.ok(interrupted >= 0 && interrupted < complete && cancelled >= 0, `${interrupted} ${cancelled} ${complete}`);
  assert.ok(!talk.said().includes('long time') && talk.said().endsWith('All right.'), talk.said());
  assert.equal(talk.heard(), 'Stop.');
  talk.session.close();
  await done();
});

test(`${title}a lost conversation goes on with its handle`, async () => {
  const done = await play([
    { begins: 'text', steps: [{ say: 'Hello.' }] },
    { begins: 'text', steps: [{ call: { name: 'look_up' } }, { say: 'Found.' }] },
  ]);
  const first = await connect(simulator);
  first.session.sendRealtimeInput({ text: 'Hi' });
  await first.turn(1);
  const { newHandle, resumable } = await until(async () => {
    const update = await first.handle();
    return update.newHandle && update;
  }, 'a handle');
  assert.equal(resumable, true);
  first.session.close();
  await first.closed();

  const second = await connect(simulator, { sessionResumption: { handle: newHandle } });
  second.session.sendClientContent({
    turns: [
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ text: 'Hello.' }] },
      { role: 'user', parts: [{ text: 'Look it up' }] },
    ],
    turnComplete: true,
  });
  await second.find((message) => message.toolCall);
  const [{ id, name }] = second.calls();
  second.session.sendToolResponse({ functionResponses: { id, name, response: { output: 1 } } });
  await second.turn(1);
  assert.equal(second.said(), 'Found.');
  second.session.close();
  await done();
});

test(`${title}goodbyes and broken lines reach the client`, async () => {
  const done = await play({
    frames: 'text',
    turns: [
      { begins: 'text', steps: [{ frame: { somethingNew: {}, serverContent: { notYet: 1 } } }, { say: 'Hello.' }] },
      { begins: 'text', steps: [{ goAway: { leftMs: 500, code: 1011, reason: 'Deadline expired' } }] },
    ],
  });
  const talk = await connect(simulator);
  talk.session.sendRealtimeInput({ text: 'Hi' });
  await talk.turn(1);
  talk.session.sendRealtimeInput({ text: 'Bye' });
  const { goAway } = await talk.find((message) => message.goAway);
  assert.equal(goAway.timeLeft, '0.500s');
  assert.deepEqual(await talk.closed(), { code: 1011, reason: 'Deadline expired' });
  await done();
});

test(`${title}an answer to a call that was never made is refused`, async () => {
  const fault = 'there is an answer to “never”, which this connection has not asked for';
  const done = await play([{ begins: 'start', steps: [{ say: 'Hello.' }] }], [`connection 1: ${fault}`]);
  const talk = await connect(simulator);
  await talk.turn(1);
  talk.session.sendToolResponse({ functionResponses: { id: 'never', name: 'look_up', response: {} } });
  assert.deepEqual(await talk.closed(), { code: 1007, reason: fault });
  await done();
});

test(`${title}without a scenario the rehearsal answers`, async () => {
  const done = await play();
  const talk = await connect(simulator);
  talk.session.sendClientContent({ turns: 'Thanks' });
  await talk.turn(1);
  assert.equal(talk.said(), 'You are welcome.');
  talk.speak(1_000);
  await talk.turn(2);
  assert.match(talk.heard(), /\(speech, 1\.0 s\)/);
  assert.match(talk.said(), /without speech recognition/);
  talk.session.close();
  await done();
});
