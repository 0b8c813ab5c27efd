// Runs on the audio thread: plays a queue of PCM at 24 kHz in order; a pause keeps it, and a flush drops it, both at once.
//
// In: samples, 'pause', 'resume' or 'flush'. Out: 'playing' when it begins, 'empty' when everything has been played, and now
// and then how many milliseconds have been played since the last flush.

const RATE = 24_000;
/** Buffered before playback starts, so that a late packet does not cause a gap. */
const START_SAMPLES = RATE / 10;
/** Playback starts after this delay even with less, so that short speech is played. */
const MAX_START_DELAY_S = 0.15;
/** Two minutes; more is dropped. */
const MAX_QUEUED_SAMPLES = RATE * 120;
/** How much is played between two reports. */
const REPORT_SAMPLES = RATE / 4;
const scope = /** @type {any} */ (globalThis);

class Playback extends scope.AudioWorkletProcessor {
  /** @type {Int16Array[]} */
  queue = [];
  queued = 0;
  /** The position of the next sample in the first chunk. */
  place = 0;
  isPlaying = false;
  isPaused = false;
  /** Samples since the last flush, and how many of them were reported. */
  played = 0;
  reported = 0;
  since = 0;
  step = RATE / scope.sampleRate;

  constructor() {
    super();
    const { port } = /** @type {{ port: MessagePort }} */ (/** @type {unknown} */ (this));
    this.tell = (/** @type {string | number} */ what) => port.postMessage(what);
    port.onmessage = ({ data }) => {
      if (data === 'flush') this.flush();
      else if (data === 'pause') this.pause();
      else if (data === 'resume') this.isPaused = false;
      else this.take(new Int16Array(data, 0, data.byteLength >> 1));
    };
  }

  pause() {
    this.isPaused = true;
    this.report();
  }

  report() {
    if (this.reported === this.played) return;
    this.reported = this.played;
    this.tell(Math.round((this.played * 1000) / RATE));
  }

  /** @param {Int16Array} samples */
  take(samples) {
    if (this.queued + samples.length > MAX_QUEUED_SAMPLES || samples.length === 0) return;
    if (this.queued === 0) this.since = scope.currentTime;
    this.queue.push(samples);
    this.queued += samples.length;
  }

  flush() {
    const had = this.isPlaying || this.queued > 0;
    this.queue = [];
    this.queued = 0;
    this.place = 0;
    this.isPlaying = false;
    this.isPaused = false;
    this.played = 0;
    this.reported = 0;
    if (had) this.tell('empty');
  }

  /** @param {unknown} _inputs @param {Float32Array[][]} outputs */
  process(_inputs, [[output]]) {
    if (this.isPaused) return true;
    if (!this.isPlaying) {
      const isLate = this.queued > 0 && scope.currentTime - this.since > MAX_START_DELAY_S;
      if (this.queued < START_SAMPLES && !isLate) return true;
      this.isPlaying = true;
      this.tell('playing');
    }
    for (let at = 0; at < output.length; at += 1) {
      const sample = this.next();
      if (sample === null) {
        this.isPlaying = false;
        this.report();
        this.tell('empty');
        break;
      }
      output[at] = sample;
    }
    if (this.played - this.reported >= REPORT_SAMPLES) this.report();
    return true;
  }

  /** The next sample, interpolated where the rates differ. */
  next() {
    const first = this.queue[0];
    if (!first) return null;
    const whole = Math.floor(this.place);
    const here = first[whole];
    const after = first[whole + 1] ?? this.queue[1]?.[0] ?? here;
    const sample = here + (after - here) * (this.place - whole);
    this.place += this.step;
    this.played += this.step;
    while (this.queue[0] && this.place >= this.queue[0].length) {
      this.place -= this.queue[0].length;
      this.queued -= this.queue[0].length;
      this.queue.shift();
    }
    if (!this.queue[0]) this.place = 0;
    return sample / 0x8000;
  }
}

scope.registerProcessor('playback', Playback);

// A module, so that its names stay local.
export {};
