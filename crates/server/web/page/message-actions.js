// What a reader does with an answer: copy it, have it written again, and say what they think of it.
//
// Events: `retry`, `rate` (detail: message, rating, comment), `notify` (detail: a text).

import { fill, h, setText } from '../shared/dom.js';
import { icon, picture } from '../shared/icons.js';
import { textOf } from './model.js';
import { timeAgo } from './time-ago.js';

/** @typedef {import('./model.js').Message} Message */
/** @typedef {'up' | 'down'} Rating */

const MAX_COMMENT_CHARS = 2_000;
const COPIED_MS = 2_000;

const shapes = {
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  again: 'M20 11a8 8 0 1 0-2.3 5.7M20 5v6h-6',
  thumbUp: 'M4 11h3v9H4zM7 12l4-8c1.700 0 2.500 1 2.200 2.500L12.500 10H19a1.600 1.600 0 0 1 1.600 2l-1.500 6.500A2 2 0 0 1 17 20H7',
  thumbDown: 'M4 13h3V4H4zM7 12l4 8c1.700 0 2.500-1 2.200-2.500L12.500 14H19a1.600 1.600 0 0 0 1.600-2l-1.500-6.500A2 2 0 0 0 17 4H7',
};

let forms = 0;

export class MessageActions extends HTMLElement {
  /** @type {Message | null} */
  #message = null;
  #copy = action('copy', 'Copy', shapes.copy);
  #retry = action('answer-retry', 'Try again', shapes.again);
  #up = action('rate-up', 'Good answer', shapes.thumbUp);
  #down = action('rate-down', 'Bad answer', shapes.thumbDown);
  #time = h('span', { class: 'answer-time' });
  #row = h('div', { class: 'answer-actions', role: 'group', 'aria-label': 'Answer' });
  #timer = 0;

  connectedCallback() {
    if (this.#row.isConnected) return;
    this.#row.append(this.#copy, this.#retry, this.#up, this.#down, this.#time);
    this.append(this.#row);
    this.#copy.addEventListener('click', () => void this.#onCopy());
    this.#retry.addEventListener('click', () => this.#emit('retry'));
    this.#up.addEventListener('click', () => this.#onRate('up'));
    this.#down.addEventListener('click', () => this.#onRate('down'));
  }

  /** @param {Message} message */
  update(message) {
    const isNew = this.#message !== message;
    this.#message = message;
    this.#copy.hidden = textOf(message) === '';
    // Of a message that was refused the server knows nothing.
    const isKept = message.id !== '';
    const offersRetry = message.parts.some(
      (part) => (part.kind === 'note' && part.mayRetry) || (part.kind === 'error' && part.retryable),
    );
    this.#retry.hidden = !isKept || offersRetry;
    this.#up.hidden = !isKept;
    this.#down.hidden = !isKept;
    this.#up.setAttribute('aria-pressed', String(message.feedback?.rating === 'up'));
    this.#down.setAttribute('aria-pressed', String(message.feedback?.rating === 'down'));
    if (isNew) fill(this.#time, message.at !== undefined && timeAgo(message.at));
    if (!message.feedback) this.#closeForm();
  }

  async #onCopy() {
    const text = this.#message ? textOf(this.#message) : '';
    const isCopied = await copy(text, this);
    this.#emit('notify', isCopied ? 'Copied.' : 'This browser does not let the page copy. Select the text instead.');
    if (!isCopied) return;
    label(this.#copy, 'Copied', icon('check'));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => label(this.#copy, 'Copy', picture(shapes.copy)), COPIED_MS);
  }

  /** A second press takes the rating back. @param {Rating} rating */
  #onRate(rating) {
    const message = this.#message;
    if (!message) return;
    if (message.feedback?.rating === rating) {
      this.#closeForm();
      return this.#emit('rate', { message, rating: 'none' });
    }
    this.#emit('rate', { message, rating });
    this.#openForm(message, rating);
  }

  /** @param {Message} message @param {Rating} rating */
  #openForm(message, rating) {
    this.#closeForm();
    forms += 1;
    const id = `comment-${forms}`;
    const text = h('textarea', { id, rows: 2, maxlength: MAX_COMMENT_CHARS, 'data-testid': 'rate-comment' });
    const question = rating === 'up' ? 'What was good about it?' : 'What was wrong with it?';
    const close = () => {
      this.#closeForm();
      (rating === 'up' ? this.#up : this.#down).focus();
    };
    const form = h(
      'form',
      { class: 'rate-form', 'data-testid': 'rate-form' },
      h('label', { for: id }, `${question} (optional)`),
      text,
      h(
        'div',
        { class: 'rate-buttons' },
        h('button', { type: 'submit', 'data-testid': 'rate-send' }, 'Send'),
        h('button', { type: 'button', class: 'plain', onclick: close }, 'No comment'),
      ),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const comment = text.value.trim();
      if (comment) this.#emit('rate', { message, rating, comment });
      this.#emit('notify', 'Thank you.');
      close();
    });
    form.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    });
    this.append(form);
  }

  #closeForm() {
    this.querySelector('form')?.remove();
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

/** @param {string} testId @param {string} name @param {string} shape */
function action(testId, name, shape) {
  const button = h('button', { type: 'button', class: 'plain answer-action', 'data-testid': testId });
  label(button, name, picture(shape));
  return button;
}

/** @param {HTMLButtonElement} button @param {string} name @param {SVGElement} shown */
function label(button, name, shown) {
  button.setAttribute('aria-label', name);
  button.title = name;
  fill(button, shown);
}

/**
 * Copies a text. On plain HTTP there is no clipboard but what an element has selected.
 *
 * @param {string} text
 * @param {HTMLElement} beside
 */
async function copy(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'hidden', 'aria-hidden': 'true', tabindex: -1 });
    setText(area, text);
    beside.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    return isCopied;
  }
}

customElements.define('qd-actions', MessageActions);
