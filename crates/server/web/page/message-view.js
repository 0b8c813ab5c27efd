// <qd-message>: one message with its tool calls and confirmations.

import { fill, h, setText } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { showMarkdown } from '../shared/markdown.js';
import { ConfirmCard } from './confirm-card.js';
import { explain } from './explain.js';
import { ImageCard } from './image-card.js';
import { Sources } from './sources.js';
import { ToolCard } from './tool-card.js';

/** @typedef {import('./model.js').Message} Message */
/** @typedef {import('./model.js').Part} Part */
/** @typedef {import('./model.js').ToolFile} ToolFile */
/** @typedef {import('./records.js').Records} Records */

export class MessageView extends HTMLElement {
  /** @type {Message | null} */
  message = null;
  /** @type {Map<Part, HTMLElement>} */
  #views = new Map();
  #waiting = h('p', { class: 'waiting' }, h('span'), h('span'), h('span'), h('span', { class: 'hidden' }, 'Thinking'));
  #sources = new Sources();
  /** @type {ReturnType<typeof newActions>} */
  #actions;

  /** @param {Message} message @param {Records} records */
  update(message, records) {
    this.message = message;
    this.dataset.testid = message.isSpoken ? 'caption' : 'message';
    this.dataset.role = message.role;
    this.setAttribute('role', 'article');
    this.setAttribute('aria-label', message.role === 'user' ? 'You' : 'Agent');
    this.dataset.state = message.isOpen ? 'open' : 'done';
    this.classList.toggle('spoken', message.isSpoken === true);
    const parts = new Set(message.parts);
    for (const [part, view] of this.#views) {
      if (parts.has(part)) continue;
      view.remove();
      this.#views.delete(part);
    }
    this.#sources.begin(records);
    for (const part of message.parts) this.#show(part);
    const last = message.parts.at(-1);
    const isSilent = message.isOpen && !message.isSpoken && last?.kind !== 'text';
    if (isSilent) this.append(this.#waiting);
    else this.#waiting.remove();
    this.#sources.show(this, !message.isOpen);
    this.#showActions(message);
  }

  /** Below a written answer that is complete and waits for nothing. @param {Message} message */
  #showActions(message) {
    const isWaiting = message.parts.some((part) => part.kind === 'tool' && part.state === 'asked');
    const isAnswer = message.role === 'assistant' && !message.isSpoken && !message.isOpen;
    const actions = isAnswer ? (this.#actions ??= newActions()) : this.#actions;
    if (!isAnswer || isWaiting || !actions) return actions?.remove();
    if (this.lastElementChild !== actions) this.append(actions);
    actions.update(message);
  }

  /** @param {Part} part */
  #show(part) {
    const old = this.#views.get(part);
    const view = old ?? make(part);
    if (!old) {
      this.#views.set(part, view);
      this.append(view);
    }
    switch (part.kind) {
      case 'text':
        if (this.message?.role === 'user') setText(view, part.text);
        else showMarkdown(view, part.text, this.#sources.cite);
        break;
      case 'thought':
        setText(view.lastElementChild ?? view, part.text);
        break;
      case 'tool':
        if (view.firstElementChild instanceof ToolCard) view.firstElementChild.update(part);
        if (part.question && !(view.lastElementChild instanceof ConfirmCard)) view.append(new ConfirmCard());
        if (view.lastElementChild instanceof ConfirmCard) view.lastElementChild.update(part);
        showFiles(view, part.files ?? []);
        break;
    }
  }
}

/** What a reader does with an answer, on a page that has loaded it. */
function newActions() {
  const Actions = customElements.get('qd-actions');
  return Actions && /** @type {import('./message-actions.js').MessageActions} */ (new Actions());
}

/** Images stand between the call and the question about it. @param {HTMLElement} view @param {ToolFile[]} files */
function showFiles(view, files) {
  const cards = [...view.children].filter((child) => child instanceof ImageCard);
  for (const [index, file] of files.entries()) {
    const card = cards[index] ?? new ImageCard();
    if (!card.isConnected) (cards[index - 1] ?? view.firstElementChild)?.after(card);
    card.show(file);
    cards[index] = card;
  }
}

/** @param {Part} part @returns {HTMLElement} */
function make(part) {
  switch (part.kind) {
    case 'text':
      return h('div', { class: 'words' });
    case 'thought':
      return h('details', { class: 'thought' }, h('summary', {}, 'Thoughts'), h('p'));
    case 'tool':
      return h('div', { class: 'call' }, new ToolCard());
    case 'note':
      return h('p', { class: 'note', 'data-testid': 'note' }, part.text, part.mayRetry && ' ', part.mayRetry && retryButton());
    case 'error':
      return errorView(part);
    case 'offer':
      return offerView(part);
  }
}

/** @param {import('./model.js').ErrorPart} part */
function errorView(part) {
  const view = h('div', { class: 'error', role: 'alert', 'data-testid': 'error', 'data-type': part.type });
  const why = explain(part.type);
  fill(view, h('p', {}, h('strong', {}, why ?? part.message)), why && why !== part.message && h('p', {}, part.message));
  if (part.retryable) view.append(retryButton());
  return view;
}

function retryButton() {
  const retry = (/** @type {Event} */ event) => {
    event.currentTarget?.dispatchEvent(new CustomEvent('retry', { bubbles: true }));
  };
  return h('button', { type: 'button', 'data-testid': 'retry', onclick: retry }, 'Try again');
}

/** The agent offers a call. @param {import('./model.js').OfferPart} part */
function offerView(part) {
  const accept = (/** @type {Event} */ event) => {
    event.currentTarget?.dispatchEvent(new CustomEvent('accept', { bubbles: true, detail: part }));
  };
  return h(
    'div',
    { class: 'offer', 'data-testid': 'voice-offer' },
    h(
      'p',
      {},
      part.pendingRequest ? `The agent offers a call: ${part.pendingRequest}` : 'The agent offers a call.',
    ),
    h(
      'button',
      { type: 'button', class: 'primary', 'data-testid': 'voice-accept', onclick: accept },
      icon('microphone'),
      'Start the call',
    ),
  );
}

customElements.define('qd-message', MessageView);
