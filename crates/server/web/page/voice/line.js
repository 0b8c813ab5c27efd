// The WebSocket of a call: comes back by itself when it is lost, and never lets old audio pile up.
//
// Events: `told` (detail: a message), `audio` (detail: samples), `lost`, `closed` (detail: code, reason, hadOpened).

/** How much audio may wait in the browser, and how much with us beyond that: half a second each of 16 kHz. */
const WAITING_BYTES = 16_000;
const WAITING_FRAMES = 25;
/** How long a lost call is tried for. */
const PATIENCE_MS = 60_000;
/** Close codes after which there is no use in calling again. */
const FINAL = new Set([1000, 1008, 1009, 1011, 1013, 4001, 4002]);

export class Line extends EventTarget {
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {ArrayBuffer[]} */
  #frames = [];
  #isOver = false;
  #hasOpened = false;
  #lostAt = 0;
  #pause = 250;
  #timer = 0;

  /** @param {() => object} start what each connection begins with */
  constructor(start) {
    super();
    this.start = start;
  }

  open() {
    const address = new URL('/voice', location.href);
    address.protocol = address.protocol.replace('http', 'ws');
    const socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    socket.addEventListener('open', () => {
      this.#hasOpened = true;
      socket.send(JSON.stringify({ type: 'start', ...this.start() }));
    });
    socket.addEventListener('message', ({ data }) => {
      if (socket !== this.#socket) return;
      if (data instanceof ArrayBuffer) this.#tell('audio', data);
      else this.#tell('told', JSON.parse(data));
    });
    socket.addEventListener('close', (event) => {
      if (socket === this.#socket) this.#closed(event);
    });
  }

  /** The server has answered: the next loss is another one. */
  settled() {
    this.#lostAt = 0;
    this.#pause = 250;
  }

  /** Whether it could be sent. @param {object} message */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends what the microphone hears. When the network does not keep up, the oldest goes. @param {ArrayBuffer} frame */
  sendAudio(frame) {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return;
    this.#frames.push(frame);
    if (this.#frames.length > WAITING_FRAMES) this.#frames.shift();
    while (this.#frames.length > 0 && socket.bufferedAmount < WAITING_BYTES) {
      const next = this.#frames.shift();
      if (next) socket.send(next);
    }
  }

  close() {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
    this.#socket = null;
  }

  /** @param {CloseEvent} event */
  #closed({ code, reason }) {
    this.#frames = [];
    if (this.#isOver) return;
    this.#lostAt ||= Date.now();
    const isHopeless =
      Date.now() - this.#lostAt > PATIENCE_MS || (!this.#hasOpened && Date.now() - this.#lostAt > 2_000);
    if (FINAL.has(code) || isHopeless) {
      this.#isOver = true;
      return this.#tell('closed', { code, reason, hadOpened: this.#hasOpened });
    }
    this.#tell('lost');
    this.#timer = setTimeout(() => this.open(), this.#pause);
    this.#pause = Math.min(this.#pause * 1.7, 5_000);
  }

  /** @param {string} name @param {unknown} [detail] */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
