// <qd-time>: a moment in words that stay true while the page is open, with the exact one for machines.

import { h, setText } from './dom.js';
import { moment, serverNow } from './time.js';

const REFRESH_MS = 30_000;

/** Those that are shown. @type {Set<HumanTime>} */
const shown = new Set();
let timer = 0;

export class HumanTime extends HTMLElement {
  /** @type {Date | null} */
  #date = null;
  #time = h('time');
  /** @type {(date: Date, now: Date) => string} */
  #words = moment;

  /**
   * @param {Date} date
   * @param {(date: Date, now: Date) => string} words
   * @returns {this}
   */
  show(date, words) {
    this.#date = date;
    this.#words = words;
    this.#time.dateTime = date.toISOString();
    this.#time.title = date.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'short' });
    this.draw();
    if (!this.#time.isConnected) this.append(this.#time);
    return this;
  }

  draw() {
    if (this.#date) setText(this.#time, this.#words(this.#date, new Date(serverNow())));
  }

  connectedCallback() {
    shown.add(this);
    timer ||= setInterval(() => shown.forEach((time) => time.draw()), REFRESH_MS);
  }

  disconnectedCallback() {
    shown.delete(this);
    if (shown.size > 0) return;
    clearInterval(timer);
    timer = 0;
  }
}

customElements.define('qd-time', HumanTime);

/** When it is: `tomorrow 10:00`. @param {Date} date */
export function timeOf(date) {
  return new HumanTime().show(date, moment);
}

/**
 * A text whose timestamps are in words.
 *
 * @param {string} text
 * @returns {(string | HumanTime)[]}
 */
export function withTimes(text) {
  const pieces = text.split(/(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))/);
  return pieces.map((piece, place) => {
    const date = place % 2 === 1 ? new Date(piece) : null;
    return date && !Number.isNaN(date.getTime()) ? timeOf(date) : piece;
  });
}
