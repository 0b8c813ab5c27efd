// What the views of the deck share: they are built when they are first looked at, and ask for nothing when they are not.

import { Refused } from '../shared/api.js';
import { h, setText } from '../shared/dom.js';

/** How long to wait before a server that was not there is asked again. */
const PAUSE = 3_000;

export class View extends HTMLElement {
  /** What the view has to say about itself. */
  notice = h('p', { class: 'notice', role: 'status' });
  #isBuilt = false;
  #timer = 0;
  #retry = 0;

  /** Somebody looks at it. @param {string} rest what the address says beside the view's name */
  show(rest) {
    if (!this.#isBuilt) this.build();
    this.#isBuilt = true;
    this.hidden = false;
    void this.#begin(rest);
  }

  /** Nobody looks at it. */
  hide() {
    this.hidden = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    this.leave();
  }

  /** Makes what is in it, once. */
  build() {}

  /** Asks for what it shows. @param {string} _rest @returns {Promise<void>} */
  async load(_rest) {}

  /** Lets go of what it held while it was looked at. */
  leave() {}

  /** Does something again and again while somebody looks. @param {number} milliseconds @param {() => Promise<void>} work */
  every(milliseconds, work) {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => document.hidden || void this.attempt(work, true), milliseconds);
  }

  /**
   * Does something, and says what goes wrong, which it gives as well.
   *
   * @param {() => Promise<void>} work
   * @param {boolean} [isRepeated] whether it is done again without anybody's doing
   * @returns {Promise<unknown>}
   */
  async attempt(work, isRepeated = false) {
    try {
      await work();
      if (this.notice.classList.contains('bad')) this.tell('');
      return null;
    } catch (error) {
      this.tell(inWords(error, isRepeated), true);
      return error;
    }
  }

  /** Asks for what it shows, until the server is there or nobody looks any more. @param {string} rest */
  async #begin(rest) {
    clearTimeout(this.#retry);
    const error = await this.attempt(() => this.load(rest), true);
    if (!(error instanceof TypeError) || this.hidden) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#begin(rest), PAUSE);
  }

  /** @param {string} text @param {boolean} [isBad] */
  tell(text, isBad = false) {
    this.notice.classList.toggle('bad', isBad);
    setText(this.notice, text);
  }
}

/** @param {unknown} error @param {boolean} isRepeated */
function inWords(error, isRepeated) {
  if (error instanceof Refused) return error.message;
  if (error instanceof TypeError)
    return `The server cannot be reached. ${isRepeated ? 'It is tried again.' : 'Try again in a moment.'}`;
  return error instanceof Error ? error.message : String(error);
}
