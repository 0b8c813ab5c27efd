// Runs on the audio thread: a queue of PCM at 24 kHz that is played in order and can be thrown away at once.
//
// In: samples, or 'flush'. Out: 'playing' when it begins, 'empty' when everything has been heard.

const RATE = 24_000;
/** How much is gathered before it begins, so that a late packet does not make it stutter. */
const HEAD = RATE / 10;
/** How long it waits for that: a short word is heard too. */
const PATIENCE = 0.15;
/** The most that is queued: two minutes. A server that sends more is not listened to. */
const MOST = RATE * 120;
const scope = /** @type {any} */ (globalThis);

class Playback extends scope.AudioWorkletProcessor {
  /** @type {Int16Array[]} */
  queue = [];
  waiting = 0;
  /** Where in the first piece the next sample is. */
  place = 0;
  isPlaying = false;
  since = 0;
  step = RATE / scope.sampleRate;

  constructor() {
    super();
    const { port } = /** @type {{ port: MessagePort }} */ (/** @type {unknown} */ (this));
    this.tell = (/** @type {string} */ what) => port.postMessage(what);
    port.onmessage = ({ data }) =>
      data === 'flush' ? this.flush() : this.take(new Int16Array(data, 0, data.byteLength >> 1));
  }

  /** @param {Int16Array} samples */
  take(samples) {
    if (this.waiting + samples.length > MOST || samples.length === 0) return;
    if (this.waiting === 0) this.since = scope.currentTime;
    this.queue.push(samples);
    this.waiting += samples.length;
  }

  flush() {
    const had = this.isPlaying || this.waiting > 0;
    this.queue = [];
    this.waiting = 0;
    this.place = 0;
    this.isPlaying = false;
    if (had) this.tell('empty');
  }

  /** @param {unknown} _inputs @param {Float32Array[][]} outputs */
  process(_inputs, [[output]]) {
    if (!this.isPlaying) {
      const isLate = this.waiting > 0 && scope.currentTime - this.since > PATIENCE;
      if (this.waiting < HEAD && !isLate) return true;
      this.isPlaying = true;
      this.tell('playing');
    }
    for (let at = 0; at < output.length; at += 1) {
      const sample = this.next();
      if (sample === null) {
        this.isPlaying = false;
        this.tell('empty');
        break;
      }
      output[at] = sample;
    }
    return true;
  }

  /** The next sample, between two of the queue where the rates differ. */
  next() {
    const first = this.queue[0];
    if (!first) return null;
    const whole = Math.floor(this.place);
    const here = first[whole];
    const after = first[whole + 1] ?? this.queue[1]?.[0] ?? here;
    const sample = here + (after - here) * (this.place - whole);
    this.place += this.step;
    while (this.queue[0] && this.place >= this.queue[0].length) {
      this.place -= this.queue[0].length;
      this.waiting -= this.queue[0].length;
      this.queue.shift();
    }
    if (!this.queue[0]) this.place = 0;
    return sample / 0x8000;
  }
}

scope.registerProcessor('playback', Playback);

// A module, so that its names are its own.
export {};
