// Base of the deck's views: built when first shown, and silent while hidden.

import { ApiError } from '../shared/api.js';
import { h, setText } from '../shared/dom.js';

const RETRY_DELAY_MS = 3_000;

export class View extends HTMLElement {
  notice = h('p', { class: 'notice', role: 'status' });
  #isBuilt = false;
  #timer = 0;
  #retry = 0;

  /** @param {string} rest the part of the fragment after the view's name */
  show(rest) {
    if (!this.#isBuilt) this.build();
    this.#isBuilt = true;
    this.hidden = false;
    void this.#begin(rest);
  }

  hide() {
    this.hidden = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    this.leave();
  }

  /** Creates the content, once. */
  build() {}

  /** Loads the data. @param {string} _rest @returns {Promise<void>} */
  async load(_rest) {}

  /** Releases resources when hidden. */
  leave() {}

  /** Repeats work while the view is visible. @param {number} milliseconds @param {() => Promise<void>} work */
  every(milliseconds, work) {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => document.hidden || void this.attempt(work, true), milliseconds);
  }

  /**
   * Runs work, and shows and returns its error.
   *
   * @param {() => Promise<void>} work
   * @param {boolean} [isRepeated] whether it is retried automatically
   * @returns {Promise<unknown>}
   */
  async attempt(work, isRepeated = false) {
    try {
      await work();
      if (this.notice.classList.contains('bad')) this.showNotice('');
      return null;
    } catch (error) {
      this.showNotice(errorMessage(error, isRepeated), true);
      return error;
    }
  }

  /** Loads the data, retrying until the server answers or the view is hidden. @param {string} rest */
  async #begin(rest) {
    clearTimeout(this.#retry);
    const error = await this.attempt(() => this.load(rest), true);
    if (!(error instanceof TypeError) || this.hidden) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#begin(rest), RETRY_DELAY_MS);
  }

  /** @param {string} text @param {boolean} [isBad] */
  showNotice(text, isBad = false) {
    this.notice.classList.toggle('bad', isBad);
    setText(this.notice, text);
  }
}

/** @param {unknown} error @param {boolean} isRepeated */
function errorMessage(error, isRepeated) {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError)
    return `The server cannot be reached. ${isRepeated ? 'Retrying…' : 'Try again.'}`;
  return error instanceof Error ? error.message : String(error);
}
