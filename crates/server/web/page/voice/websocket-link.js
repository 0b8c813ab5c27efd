// The WebSocket of a call: reconnects when it is lost, and drops old audio instead of queueing it.
//
// Events: `told` (detail: a message), `audio` (detail: samples), `lost`, `closed` (detail: code, reason, hadOpened).

import { ApiError, post } from '../../shared/api.js';
import { isForeign, server } from '../../shared/server.js';
import { keepToken } from '../../shared/session-token.js';

/** Audio buffered in the browser, and queued here: half a second of 16 kHz each. */
const MAX_BUFFERED_BYTES = 16_000;
const MAX_QUEUED_FRAMES = 25;
const RECONNECT_TIMEOUT_MS = 60_000;
/** A connection that was lost is opened again at once, since another server may have the call in a moment; then after a pause
 * that doubles. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How long a connection may take to open. A load balancer may have sent it to a server that is gone. */
const OPEN_TIMEOUT_MS = 3_000;
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
  #retryDelay = 0;
  #timer = 0;
  #openTimer = 0;

  /** @param {() => object} start the first message of each connection */
  constructor(start) {
    super();
    this.start = start;
  }

  async open() {
    const address = new URL('/voice', server);
    address.protocol = address.protocol.replace('http', 'ws');
    try {
      // No cookie goes to a server of another origin, and a WebSocket has no headers: a ticket says whose call it is.
      if (isForeign) address.searchParams.set('ticket', await fetchTicket());
    } catch (error) {
      return this.#onRefused(error);
    }
    if (!this.#isOver) this.#connect(address);
  }

  /** @param {URL} address */
  #connect(address) {
    const socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    clearTimeout(this.#openTimer);
    this.#openTimer = setTimeout(() => this.#giveUpOn(socket), OPEN_TIMEOUT_MS);
    socket.addEventListener('open', () => {
      clearTimeout(this.#openTimer);
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
    this.#retryDelay = 0;
  }

  /** Closes a connection that does not open, without waiting for the browser to notice. @param {WebSocket} socket */
  #giveUpOn(socket) {
    if (socket !== this.#socket || socket.readyState !== WebSocket.CONNECTING) return;
    this.#socket = null;
    socket.close();
    this.#onClose({ code: 1006, reason: '' });
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
    clearTimeout(this.#openTimer);
    this.#socket?.close(1000);
    this.#socket = null;
  }

  /** No ticket was given. @param {unknown} error */
  #onRefused(error) {
    const isRefusal = error instanceof ApiError && error.status !== 503;
    if (isRefusal) this.#emit('message', { type: 'error', error });
    this.#onClose({ code: isRefusal ? 1008 : 1006, reason: '' });
  }

  /** @param {{ code: number, reason: string }} event */
  #onClose({ code, reason }) {
    this.#frames = [];
    clearTimeout(this.#openTimer);
    if (this.#isOver) return;
    this.#lostAt ||= Date.now();
    const isGivenUp =
      Date.now() - this.#lostAt > RECONNECT_TIMEOUT_MS || (!this.#hasOpened && Date.now() - this.#lostAt > 2_000);
    if (FINAL_CLOSE_CODES.has(code) || isGivenUp) {
      this.#isOver = true;
      return this.#emit('closed', { code, reason, hadOpened: this.#hasOpened });
    }
    this.#emit('lost');
    // Not all at the same moment: all calls of a server are lost with it.
    this.#timer = setTimeout(() => void this.open(), this.#retryDelay * (0.75 + Math.random() / 2));
    this.#retryDelay = Math.min(Math.max(this.#retryDelay * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS);
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** A ticket for one connection. @returns {Promise<string>} */
async function fetchTicket() {
  const { ticket, sessionToken } = await (await post('/api/voice/ticket', {})).json();
  keepToken(sessionToken);
  return ticket;
}
