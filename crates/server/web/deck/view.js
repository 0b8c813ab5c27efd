// What the views of the deck share: they are built when they are first looked at, and ask for nothing when they are not.

import { Refused } from '../shared/api.js';
import { h, setText } from '../shared/dom.js';

export class View extends HTMLElement {
  /** What the view has to say about itself. */
  notice = h('p', { class: 'notice', role: 'status' });
  #isBuilt = false;
  #timer = 0;

  /** Somebody looks at it. @param {string} rest what the address says beside the view's name */
  show(rest) {
    if (!this.#isBuilt) this.build();
    this.#isBuilt = true;
    this.hidden = false;
    void this.attempt(() => this.load(rest));
  }

  /** Nobody looks at it. */
  hide() {
    this.hidden = true;
    clearInterval(this.#timer);
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
    this.#timer = setInterval(() => document.hidden || void this.attempt(work), milliseconds);
  }

  /** Does something, and says what goes wrong. @param {() => Promise<void>} work */
  async attempt(work) {
    try {
      await work();
      if (this.notice.classList.contains('bad')) this.tell('');
    } catch (error) {
      this.tell(inWords(error), true);
    }
  }

  /** @param {string} text @param {boolean} [isBad] */
  tell(text, isBad = false) {
    this.notice.classList.toggle('bad', isBad);
    setText(this.notice, text);
  }
}

/** @param {unknown} error */
function inWords(error) {
  if (error instanceof Refused) return error.message;
  if (error instanceof TypeError) return 'The server cannot be reached. It is tried again.';
  return error instanceof Error ? error.message : String(error);
}
