// <qd-conversations>: the user's conversations, as the server keeps them.
//
// Events: `open-conversation` (detail: its id), `delete-conversation` (detail: its id).

import { getJson } from '../shared/api.js';
import { fill, focusedBeside, h } from '../shared/dom.js';
import { icon, picture } from '../shared/icons.js';
import { visible } from '../shared/visible.js';
import { timeAgo } from './time-ago.js';

/** @typedef {Api.ListedConversation} Listed */

const BIN = 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5';

export class Conversations extends HTMLElement {
  /** The element to focus on close. @type {HTMLElement | null} */
  #from = null;
  /** @type {Listed[]} */
  #listed = [];
  /** @type {string | null} */
  #next = null;
  /** The conversation that is shown in the page. */
  #current = '';
  #list = h('ul', { class: 'conversation-list' });
  #state = h('p', { class: 'note', role: 'status', 'data-testid': 'conversations-state' });
  #more = h('button', { type: 'button', 'data-testid': 'conversations-more', hidden: true }, 'Show more');
  #heading = h('h2', { tabindex: -1, id: 'conversations-title' }, 'Conversations');
  #panel = h('aside', { 'aria-labelledby': 'conversations-title', 'data-testid': 'conversations' });

  connectedCallback() {
    if (this.#panel.isConnected) return;
    const close = h(
      'button',
      { type: 'button', class: 'plain', 'aria-label': 'Close', onclick: () => this.close() },
      icon('cross'),
    );
    this.#panel.append(h('header', {}, this.#heading, close), this.#list, this.#state, this.#more);
    this.#more.addEventListener('click', () => void this.#load(this.#next));
    this.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    this.hidden = true;
    this.append(this.#panel);
  }

  /** @param {string} current the conversation that is shown */
  async open(current) {
    if (this.hidden) this.#from = focusedBeside(this);
    this.#current = current;
    this.hidden = false;
    this.#heading.focus();
    this.#listed = [];
    fill(this.#list);
    await this.#load(null);
  }

  close() {
    if (this.hidden) return;
    this.hidden = true;
    this.#from?.focus();
  }

  /** @param {string | null} after */
  async #load(after) {
    this.#tell('Loading…');
    this.#more.hidden = true;
    try {
      const query = after ? `?after=${encodeURIComponent(after)}` : '';
      /** @type {Api.ConversationList} */
      const { sessions, next } = await getJson(`/api/sessions${query}`);
      this.#listed.push(...sessions);
      this.#next = next;
      this.#list.append(...sessions.map((session) => this.#item(session)));
      this.#tell(this.#listed.length === 0 ? 'No conversations yet.' : '');
      this.#more.hidden = next === null;
    } catch {
      this.#tell('The list could not be loaded.');
      this.#next = after;
      this.#more.hidden = false;
    }
  }

  /** @param {Listed} session */
  #item(session) {
    const item = h('li', { 'data-testid': 'conversation' });
    const isCurrent = session.id === this.#current || session.sessionId === this.#current;
    const title = visible(session.title);
    const open = h(
      'button',
      {
        type: 'button',
        class: 'conversation',
        'aria-current': isCurrent && 'true',
        onclick: () => this.#emit('open-conversation', session.id),
      },
      h('span', { class: 'conversation-title' }, h('bdi', {}, title)),
      h('span', { class: 'quiet' }, timeAgo(session.updatedMs)),
    );
    const remove = h(
      'button',
      {
        type: 'button',
        class: 'plain',
        'aria-label': `Delete “${title}”`,
        title: 'Delete',
        'data-testid': 'conversation-delete',
        onclick: () => this.#ask(item, session, [open, remove]),
      },
      picture(BIN),
    );
    fill(item, open, remove);
    return item;
  }

  /** Asks before it deletes. @param {HTMLElement} item @param {Listed} session @param {HTMLElement[]} was */
  #ask(item, session, was) {
    const keep = () => {
      fill(item, ...was);
      was[1]?.focus();
    };
    const remove = h(
      'button',
      {
        type: 'button',
        class: 'danger',
        'data-testid': 'conversation-delete-confirm',
        onclick: () => this.#remove(item, session),
      },
      'Delete',
    );
    const question = h('p', {}, 'Delete “', h('bdi', {}, visible(session.title)), '”? It cannot be brought back.');
    const buttons = h('div', { class: 'conversation-buttons' }, remove, h('button', { type: 'button', onclick: keep }, 'Keep'));
    fill(item, h('div', { class: 'conversation-question', role: 'group', 'aria-label': 'Delete?' }, question, buttons));
    remove.focus();
  }

  /** @param {HTMLElement} item @param {Listed} session */
  #remove(item, session) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.#listed = this.#listed.filter((other) => other !== session);
    if (this.#listed.length === 0) this.#tell('No conversations yet.');
    const focused = next?.querySelector('button') ?? this.#heading;
    focused.focus();
    this.#emit('delete-conversation', session.id);
  }

  /** @param {string} text */
  #tell(text) {
    this.#state.textContent = text;
    this.#state.hidden = text === '';
  }

  /** @param {string} name @param {unknown} detail */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

customElements.define('qd-conversations', Conversations);
