// Runs on the audio thread: turns microphone samples into frames of 20 ms, 16-bit PCM at 16 kHz.

/** @typedef {{ port: MessagePort }} Processor */

const RATE = 16_000;
const FRAME = 320;
const scope = /** @type {any} */ (globalThis);

class Capture extends scope.AudioWorkletProcessor {
  /** Input samples per output sample; 1 where the browser resamples. */
  step = scope.sampleRate / RATE;
  /** The position of the next output sample in the block. */
  place = 0;
  sum = 0;
  count = 0;
  frame = new Int16Array(FRAME);
  length = 0;

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    const samples = channels?.[0];
    if (!samples) return true;
    if (this.step === 1) for (const sample of samples) this.take(sample);
    else this.resample(samples);
    return true;
  }

  /**
   * Averages the input of one output sample, which also filters out higher frequencies.
   *
   * @param {Float32Array} samples
   */
  resample(samples) {
    for (const sample of samples) {
      this.sum += sample;
      this.count += 1;
      this.place += 1;
      while (this.place >= this.step) {
        this.place -= this.step;
        this.take(this.count > 0 ? this.sum / this.count : sample);
        this.sum = 0;
        this.count = 0;
      }
    }
  }

  /** @param {number} sample */
  take(sample) {
    const clamped = Math.max(-1, Math.min(1, sample));
    this.frame[this.length] = clamped < 0 ? clamped * 0x8000 : clamped * 0x7fff;
    this.length += 1;
    if (this.length < FRAME) return;
    const { buffer } = this.frame;
    /** @type {Processor} */ (/** @type {unknown} */ (this)).port.postMessage(buffer, [buffer]);
    this.frame = new Int16Array(FRAME);
    this.length = 0;
  }
}

scope.registerProcessor('capture', Capture);

// A module, so that its names stay local.
export {};
