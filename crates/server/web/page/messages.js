// The list of messages, and what a screen reader announces: each answer once, when complete.

import { setText } from '../shared/dom.js';
import { MessageView } from './message-view.js';
import { textOf } from './model.js';

/** @typedef {import('./model.js').Message} Message */

const MAX_ANNOUNCED_CHARS = 600;

export class Messages {
  /** @type {Map<Message, MessageView>} */
  #views = new Map();
  /** Questions already announced. @type {Set<string>} */
  #asked = new Set();
  /** Changes since the last frame, and whether the message still exists. @type {Map<Message, boolean>} */
  #pending = new Map();

  /** @param {HTMLElement} list @param {HTMLElement} announcer @param {import('./records.js').Records} records */
  constructor(list, announcer, records) {
    this.list = list;
    this.announcer = announcer;
    this.records = records;
  }

  /** Schedules the drawing of a message that was added, changed or removed. @param {Message} message @param {Message[]} all */
  show(message, all) {
    // Streamed text is drawn once a frame. A hidden page has no frames, so it is drawn at once.
    if (this.#pending.size === 0 && !document.hidden) requestAnimationFrame(() => this.#drawAll());
    this.#pending.set(message, all.includes(message));
    if (document.hidden) this.#drawAll();
  }

  #drawAll() {
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [message, exists] of pending) this.#draw(message, exists);
  }

  /** @param {Message} message @param {boolean} exists */
  #draw(message, exists) {
    const old = this.#views.get(message);
    if (!exists) {
      old?.remove();
      this.#views.delete(message);
      return;
    }
    const view = old ?? new MessageView();
    if (!old) {
      this.#views.set(message, view);
      this.list.append(view);
    }
    this.records.collect(message);
    view.update(message, this.records);
    this.#announce(message);
  }

  /** @param {Message[]} all */
  reset(all) {
    this.#pending.clear();
    this.#views.clear();
    this.list.replaceChildren();
    for (const message of all) {
      this.records.collect(message);
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
      return setText(this.announcer, `Approval needed: ${part.question.preview}`);
    }
    const text = message.isOpen ? '' : textOf(message);
    if (text) setText(this.announcer, text.slice(0, MAX_ANNOUNCED_CHARS));
  }
}
