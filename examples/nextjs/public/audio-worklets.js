// Run on the audio thread, 128 samples at a time.

/** Sends frames of 20 ms: 320 samples of 16 bits. */
class Microphone extends AudioWorkletProcessor {
  frame = new Int16Array(320);
  filled = 0;

  process([[samples]]) {
    for (const sample of samples ?? []) {
      this.frame[this.filled++] = Math.max(-1, Math.min(1, sample)) * 32_767;
      if (this.filled < this.frame.length) continue;
      this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
      this.frame = new Int16Array(320);
      this.filled = 0;
    }
    return true;
  }
}

/** Plays what was sent to it in order, and says when it begins and when nothing is left. */
class Speaker extends AudioWorkletProcessor {
  queue = [];
  place = 0;
  isPlaying = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      if (data === 'flush') this.queue = [];
      else this.queue.push(new Int16Array(data));
    };
  }

  process(_, [[output]]) {
    for (let index = 0; index < output.length; index++) {
      while (this.queue.length > 0 && this.place >= this.queue[0].length) {
        this.queue.shift();
        this.place = 0;
      }
      output[index] = this.queue.length > 0 ? this.queue[0][this.place++] / 32_768 : 0;
    }
    const isPlaying = this.queue.length > 0;
    if (isPlaying !== this.isPlaying) this.port.postMessage(isPlaying);
    this.isPlaying = isPlaying;
    return true;
  }
}

registerProcessor('microphone', Microphone);
registerProcessor('speaker', Speaker);
