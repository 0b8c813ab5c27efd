// From the first sample of the user's speech to silence in the loudspeaker, in the browser, with a provider that is slow to
// notice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { speak } from './support/microphone.mjs';
import { delayed, startSimulator } from './support/simulator.mjs';

/** Figures are taken on an idle machine: QUARTERDECK_MEASURE=1 scripts/test-browser barge-in. */
const isMeasured = process.env.QUARTERDECK_MEASURE === '1';
const INTERRUPTIONS = isMeasured ? 40 : 8;
/** Without an ear all are slow, and a few tell it. */
const SLOW_INTERRUPTIONS = 12;
const LIMIT_MS = 200;
/** A machine that does other things besides is late at times, but never as late as the provider. */
const PROVIDER_MS = 800;
/** They begin with a vowel, a nasal, a glide and a hiss, of which the last is the hardest to tell from noise. */
const WORDS = [
  'Actually, tell me about another ship.',
  'No, I meant the captain of the ship.',
  'Wait a moment, please, I have a question.',
  'Stop, I have another question about it.',
];

/** Takes 800 ms to answer, sends everything at once, and has ended its turn long before it is heard: it never interrupts. */
const SLOW_PROVIDER = {
  audio: { partMs: 40, partsPerFrame: 2, speed: 0 },
  turnEnds: 'said',
  atEnd: 'again',
  // Without a comma: a pause in it would be taken for silence.
  turns: [
    {
      begins: 'speech',
      heard: 'Tell me about the ship.',
      steps: [
        { wait: PROVIDER_MS },
        { say: 'The Fram was built at Larvik by Colin Archer who gave her round sides so that the ice would lift her and not crush her and she carried three expeditions farther north and farther south than any other ship of her time' },
      ],
    },
  ],
};

/** Hears an interruption, 400 ms away in each direction: what users had to wait for before the server had an ear of its own. */
const FAR_PROVIDER = { ...SLOW_PROVIDER, turnEnds: 'heard' };
const ONE_WAY_MS = PROVIDER_MS / 2;

/** Watches both ends of the page: when the first loud frame of the user goes out, and when the loudspeaker falls silent. */
function watch() {
  const log = { spoke: [], silent: [], loud: [] };
  globalThis.log = log;
  const send = WebSocket.prototype.send;
  let quietSince = 0;
  WebSocket.prototype.send = function (data) {
    if (data instanceof ArrayBuffer) {
      const samples = new Int16Array(data);
      let sum = 0;
      for (const sample of samples) sum += sample * sample;
      const now = performance.now();
      // The frame has been recorded in the 20 ms before it is sent.
      if (Math.sqrt(sum / samples.length) > 300) {
        if (now - quietSince > 1_000) log.spoke.push(now - 20);
        quietSince = now;
      }
    }
    return send.call(this, data);
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target === this.context.destination) {
      const analyser = new AnalyserNode(this.context, { fftSize: 128 });
      const samples = new Float32Array(128);
      connect.call(this, analyser);
      let isLoud = false;
      let lastLoud = 0;
      setInterval(() => {
        analyser.getFloatTimeDomainData(samples);
        const now = performance.now();
        if (samples.some((sample) => Math.abs(sample) > 1e-4)) {
          if (!isLoud) log.loud.push(now);
          isLoud = true;
          lastLoud = now;
        } else if (isLoud && now - lastLoud > 150) {
          // A gap within a word is not silence.
          isLoud = false;
          log.silent.push(lastLoud);
        }
      }, 4);
    }
    return connect.call(this, target, ...rest);
  };
}

const percentile = (values, part) => [...values].sort((a, b) => a - b)[Math.ceil(values.length * part) - 1];

/** How long each interruption took to be heard, with a server of its own. */
async function interrupt(test, provider, { settings = {}, times = INTERRUPTIONS } = {}) {
  const deck = await startDeck({
    ...provider.settings,
    ...settings,
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000',
  });
  const sayings = Array.from({ length: times }, (_, at) => [4, WORDS[at % WORDS.length]]);
  const microphone = speak([2, 'Who designed the Fram?'], ...sayings);
  const browser = await startBrowser({ microphone: microphone.file });
  test.after(async () => {
    await browser.close();
    await deck.remove();
    provider.remove();
    microphone.remove();
  });
  const { by, page, leave } = await openPage(browser, deck);
  await page.evaluate(watch);
  await by('voice-start').click();
  await page.waitForFunction((count) => globalThis.log.spoke.length > count, times, { timeout: 20_000 + times * 10_000 });
  const log = await page.evaluate(() => globalThis.log);
  await by('voice-stop').click();
  await leave();
  // Only what was spoken while the agent was heard.
  const delays = log.spoke.flatMap((spoke) => {
    const begun = log.loud.filter((at) => at < spoke).at(-1);
    const ended = log.silent.find((at) => begun !== undefined && at > begun);
    return ended !== undefined && ended > spoke ? [ended - spoke] : [];
  });
  assert.ok(delays.length >= times / 2, `only ${delays.length} interruptions were heard`);
  const [p50, p95] = [percentile(delays, 0.5), percentile(delays, 0.95)];
  test.diagnostic(`speech to silence over ${delays.length}: p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`);
  return { p50, p95, text: delays.map(Math.round).join(' ') };
}

test(`playback stops within ${LIMIT_MS} ms of the user's first word`, async (test) => {
  const { p50, p95, text } = await interrupt(test, await startSimulator(SLOW_PROVIDER));
  assert.ok(p50 < LIMIT_MS, `p50 ${p50.toFixed(0)} ms: ${text}`);
  assert.ok(p95 < (isMeasured ? LIMIT_MS : PROVIDER_MS), `p95 ${p95.toFixed(0)} ms: ${text}`);
});

if (isMeasured) {
  test('without an ear of its own the server waits for the provider', async (test) => {
    const provider = await delayed(await startSimulator(FAR_PROVIDER), ONE_WAY_MS);
    const { p50, text } = await interrupt(test, provider, {
      settings: { QUARTERDECK_VOICE__EAR: 'false' },
      times: SLOW_INTERRUPTIONS,
    });
    assert.ok(p50 >= PROVIDER_MS, `p50 ${p50.toFixed(0)} ms: ${text}`);
  });
}
