// The WebSocket of a call: reconnects when it is lost, and drops old audio instead of queueing it.
//
// Events: `told` (detail: a message), `audio` (detail: samples), `lost`, `closed` (detail: code, reason, hadOpened).

/** Audio buffered in the browser, and queued here: half a second of 16 kHz each. */
const MAX_BUFFERED_BYTES = 16_000;
const MAX_QUEUED_FRAMES = 25;
const RECONNECT_TIMEOUT_MS = 60_000;
/** Close codes after which reconnecting is pointless. */
const FINAL_CLOSE_CODES = new Set([1000, 1008, 1009, 1011, 1013, 4001, 4002]);

export class WebSocketLink extends EventTarget {
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {ArrayBuffer[]} */
  #frames = [];
  #isOver = false;
  #hasOpened = false;
  #lostAt = 0;
  #retryDelay = 250;
  #timer = 0;

  /** @param {() => object} start the first message of each connection */
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
      if (data instanceof ArrayBuffer) this.#emit('audio', data);
      else this.#emit('message', JSON.parse(data));
    });
    socket.addEventListener('close', (event) => {
      if (socket === this.#socket) this.#onClose(event);
    });
  }

  /** The server is ready: a later loss starts a new retry period. */
  markReady() {
    this.#lostAt = 0;
    this.#retryDelay = 250;
  }

  /** Returns whether it was sent. @param {object} message */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends microphone audio; when the network is too slow, the oldest frames are dropped. @param {ArrayBuffer} frame */
  sendAudio(frame) {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return;
    this.#frames.push(frame);
    if (this.#frames.length > MAX_QUEUED_FRAMES) this.#frames.shift();
    while (this.#frames.length > 0 && socket.bufferedAmount < MAX_BUFFERED_BYTES) {
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
  #onClose({ code, reason }) {
    this.#frames = [];
    if (this.#isOver) return;
    this.#lostAt ||= Date.now();
    const isGivenUp =
      Date.now() - this.#lostAt > RECONNECT_TIMEOUT_MS || (!this.#hasOpened && Date.now() - this.#lostAt > 2_000);
    if (FINAL_CLOSE_CODES.has(code) || isGivenUp) {
      this.#isOver = true;
      return this.#emit('closed', { code, reason, hadOpened: this.#hasOpened });
    }
    this.#emit('lost');
    this.#timer = setTimeout(() => this.open(), this.#retryDelay);
    this.#retryDelay = Math.min(this.#retryDelay * 1.7, 5_000);
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
