// <qd-deck-audit>: searches the audit trail, and verifies its chain.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { lineView } from './line.js';
import { View } from './view.js';
import { size, whole } from './words.js';

const kinds = [
  'tool_execution',
  'confirmation',
  'state_transition',
  'session_start',
  'session_resumed',
  'session_end',
  'operator',
  'audit_gap',
];

class AuditView extends View {
  #form = h('form', {
    class: 'search',
    'data-testid': 'audit-form',
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      void this.attempt(() => this.#search());
    },
    // The fields are empty a moment later.
    onreset: () => setTimeout(() => void this.attempt(() => this.#search())),
  });
  #list = h('ol', { class: 'lines', 'aria-label': 'Lines, the newest first', 'data-testid': 'audit' });
  #more = h(
    'button',
    { hidden: true, 'data-testid': 'audit-more', onclick: () => this.attempt(() => this.#older()) },
    'Older lines',
  );
  #looked = h('span', { class: 'quiet' });
  #verify = h('button', { 'data-testid': 'verify', onclick: () => this.attempt(() => this.#check()) }, 'Verify the chain');
  #verdict = h('p', { class: 'verdict', role: 'status', 'data-testid': 'verdict' });
  /** What is being looked for. @type {Record<string, string>} */
  #asked = {};
  /** @type {number | null} */
  #next = null;

  build() {
    const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {Record<string, string>} */ props = {}) =>
      h(
        'label',
        {},
        h('span', {}, label),
        h('input', { name, autocomplete: 'off', spellcheck: 'false', maxlength: 200, ...props }),
      );
    const event = h(
      'select',
      { name: 'event' },
      h('option', { value: '' }, 'any'),
      ...kinds.map((kind) => h('option', { value: kind }, kind.replaceAll('_', ' '))),
    );
    this.#form.append(
      field('text', 'Text', { 'data-testid': 'audit-text' }),
      field('session', 'Session'),
      field('client', 'Client'),
      field('tool', 'Tool'),
      h('label', {}, h('span', {}, 'Event'), event),
      field('error', 'Error'),
      field('since', 'Since', { type: 'datetime-local' }),
      field('until', 'Until', { type: 'datetime-local' }),
      h(
        'div',
        { class: 'row' },
        h('button', { class: 'primary', 'data-testid': 'audit-search' }, 'Search'),
        h('button', { type: 'reset', 'data-testid': 'audit-clear' }, 'Clear'),
      ),
    );
    this.append(
      h('div', { class: 'row' }, h('h2', {}, 'Audit trail'), h('span', { class: 'push' }, this.#verify)),
      this.#verdict,
      this.#form,
      this.notice,
      this.#list,
      h('div', { class: 'row' }, this.#more, this.#looked),
    );
  }

  async load() {
    await this.#search();
  }

  async #search() {
    const given = new FormData(this.#form);
    this.#asked = {};
    for (const [name, value] of given) {
      if (typeof value !== 'string' || value.trim() === '') continue;
      const isTime = name === 'since' || name === 'until';
      this.#asked[name] = isTime ? new Date(value).toISOString() : value.trim();
    }
    this.#next = null;
    fill(this.#list);
    await this.#older();
  }

  async #older() {
    const { lines, next, lookedAt } = await get('audit', { ...this.#asked, before: this.#next });
    this.#next = next;
    this.#list.append(...lines.map((/** @type {any} */ line) => h('li', {}, lineView(line))));
    this.#more.hidden = next === null;
    this.#looked.textContent =
      lines.length === 0 && next !== null ? `Nothing in the last ${size(lookedAt)}; older lines were not looked at yet.` : '';
    const isEmpty = this.#list.childElementCount === 0 && next === null;
    this.tell(isEmpty ? 'No line matches. Leave fields empty to see everything.' : '');
  }

  async #check() {
    this.#verify.disabled = true;
    this.#verdict.textContent = 'Reading the whole chain…';
    this.#verdict.dataset.tone = 'quiet';
    try {
      const { isWhole, lines, unconfirmed, bytes, fault } = await send('POST', 'audit/verify');
      this.#verdict.dataset.tone = isWhole === null ? 'warn' : isWhole ? 'good' : 'bad';
      this.#verdict.textContent = isWhole
        ? `The chain is whole: ${whole(lines)} lines, ${size(bytes)}${unconfirmed > 0 ? `; the last ${whole(unconfirmed)} are not confirmed by the store yet` : ''}.`
        : fault;
    } catch (error) {
      this.#verdict.textContent = '';
      throw error;
    } finally {
      this.#verify.disabled = false;
    }
  }
}

customElements.define('qd-deck-audit', AuditView);
