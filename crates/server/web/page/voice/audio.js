// The microphone and the loudspeaker, each with a level meter.

/** The level of an audio node, from 0 to 1. */
class Level {
  /** @param {AudioContext} context */
  constructor(context) {
    this.node = new AnalyserNode(context, { fftSize: 512 });
    this.samples = new Float32Array(this.node.fftSize);
  }

  now() {
    this.node.getFloatTimeDomainData(this.samples);
    let sum = 0;
    for (const sample of this.samples) sum += sample * sample;
    return Math.min(1, Math.sqrt(sum / this.samples.length) * 4);
  }
}

/** Captures frames of 20 ms: 16-bit PCM at 16 kHz. */
export class Microphone {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {MediaStream | null} */
  #stream = null;
  /** @type {Level | null} */
  #level = null;

  /** @param {(frame: ArrayBuffer) => void} onFrame */
  async open(onFrame) {
    if (!navigator.mediaDevices) throw new DOMException('the microphone needs HTTPS', 'SecurityError');
    const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    this.#stream = await navigator.mediaDevices.getUserMedia({ audio });
    await this.#connect(onFrame, 16_000).catch(async () => {
      // Some browsers cannot connect a microphone at another rate; then the worklet resamples.
      await this.#context?.close();
      await this.#connect(onFrame);
    });
  }

  level() {
    return this.#level?.now() ?? 0;
  }

  close() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    if (this.#context?.state !== 'closed') void this.#context?.close();
    this.#level = null;
  }

  /** @param {(frame: ArrayBuffer) => void} onFrame @param {number} [sampleRate] */
  async #connect(onFrame, sampleRate) {
    const context = new AudioContext({ sampleRate });
    this.#context = context;
    await context.audioWorklet.addModule(new URL('./capture-worklet.js', import.meta.url));
    if (!this.#stream) return;
    const source = new MediaStreamAudioSourceNode(context, { mediaStream: this.#stream });
    const node = new AudioWorkletNode(context, 'capture', {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: 'explicit',
    });
    node.port.onmessage = ({ data }) => onFrame(data);
    this.#level = new Level(context);
    source.connect(this.#level.node);
    source.connect(node);
    await context.resume();
  }
}

/** Plays the agent's audio, 16-bit PCM at 24 kHz, in order until flushed. */
export class Loudspeaker {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {Level | null} */
  #level = null;

  /**
   * Must be called from a click, or browsers keep it silent.
   *
   * @param {(state: 'playing' | 'empty') => void} onState
   * @param {(ms: number) => void} onPlayed told now and then how much was played since the last flush
   */
  async open(onState, onPlayed) {
    const context = new AudioContext({ sampleRate: 24_000, latencyHint: 'interactive' });
    this.#context = context;
    const resumed = context.resume();
    await context.audioWorklet.addModule(new URL('./playback-worklet.js', import.meta.url));
    this.#node = new AudioWorkletNode(context, 'playback', { numberOfInputs: 0, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }) => (typeof data === 'number' ? onPlayed(data) : onState(data));
    this.#level = new Level(context);
    this.#node.connect(this.#level.node).connect(context.destination);
    await resumed;
  }

  /** @param {ArrayBuffer} samples */
  play(samples) {
    this.#node?.port.postMessage(samples, [samples]);
  }

  /** Stops where it is and keeps what is queued. */
  pause() {
    this.#node?.port.postMessage('pause');
  }

  resume() {
    this.#node?.port.postMessage('resume');
  }

  /** Drops everything queued. */
  flush() {
    this.#node?.port.postMessage('flush');
  }

  level() {
    return this.#level?.now() ?? 0;
  }

  close() {
    if (this.#context?.state !== 'closed') void this.#context?.close();
    this.#node = null;
    this.#level = null;
  }
}
