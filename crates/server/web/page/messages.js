// The list of messages, and what a screen reader hears of it: each answer once, when it is complete.

import { setText } from '../shared/dom.js';
import { MessageView } from './message-view.js';
import { textOf } from './model.js';

/** @typedef {import('./model.js').Message} Message */

/** The longest text that is read out by itself. The rest is there to be read. */
const SPOKEN = 600;

export class Messages {
  /** @type {Map<Message, MessageView>} */
  #views = new Map();
  /** Questions that were read out. @type {Set<string>} */
  #asked = new Set();
  /** What has changed since the last frame, and whether it is still there. @type {Map<Message, boolean>} */
  #waiting = new Map();

  /** @param {HTMLElement} list @param {HTMLElement} announcer @param {import('./records.js').Records} records */
  constructor(list, announcer, records) {
    this.list = list;
    this.announcer = announcer;
    this.records = records;
  }

  /** Shows that a message is new, has changed or is gone. @param {Message} message @param {Message[]} all */
  show(message, all) {
    // What grows by many small pieces is drawn once a frame; a page that nobody sees has none.
    if (this.#waiting.size === 0 && !document.hidden) requestAnimationFrame(() => this.#drawAll());
    this.#waiting.set(message, all.includes(message));
    if (document.hidden) this.#drawAll();
  }

  #drawAll() {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [message, isThere] of waiting) this.#draw(message, isThere);
  }

  /** @param {Message} message @param {boolean} isThere */
  #draw(message, isThere) {
    const old = this.#views.get(message);
    if (!isThere) {
      old?.remove();
      this.#views.delete(message);
      return;
    }
    const view = old ?? new MessageView();
    if (!old) {
      this.#views.set(message, view);
      this.list.append(view);
    }
    this.records.learn(message);
    view.update(message, this.records);
    this.#announce(message);
  }

  /** @param {Message[]} all */
  reset(all) {
    this.#waiting.clear();
    this.#views.clear();
    this.list.replaceChildren();
    for (const message of all) {
      this.records.learn(message);
      const view = new MessageView();
      this.#views.set(message, view);
      this.list.append(view);
      view.update(message, this.records);
    }
  }

  /** @param {Message} message */
  #announce(message) {
    if (message.role !== 'assistant' || message.isSpoken) return;
    for (const part of message.parts) {
      if (part.kind !== 'tool' || part.state !== 'asked' || !part.question || this.#asked.has(part.id)) continue;
      this.#asked.add(part.id);
      return setText(this.announcer, `The agent asks for your approval: ${part.question.preview}`);
    }
    const text = message.isOpen ? '' : textOf(message);
    if (text) setText(this.announcer, text.slice(0, SPOKEN));
  }
}
