// <qd-deck-audit>: searches the audit log and verifies its chain.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { lineView } from './audit-line.js';
import { View } from './view.js';
import { formatBytes, formatCount } from './format.js';

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
    // The fields are cleared after this event.
    onreset: () => setTimeout(() => void this.attempt(() => this.#search())),
  });
  #list = h('ol', { class: 'lines', 'aria-label': 'Lines, the newest first', 'data-testid': 'audit' });
  #more = h(
    'button',
    { hidden: true, 'data-testid': 'audit-more', onclick: () => this.attempt(() => this.#older()) },
    'Older lines',
  );
  #scanned = h('span', { class: 'quiet' });
  #damaged = h('p', { class: 'verdict', role: 'status', 'data-tone': 'bad', 'data-testid': 'audit-damaged', hidden: true });
  /** Damaged lines in what was scanned for the current query. */
  #damagedLines = 0;
  #verify = h('button', { 'data-testid': 'verify', onclick: () => this.attempt(() => this.#runVerification()) }, 'Verify the chain');
  #verdict = h('p', { class: 'verdict', role: 'status', 'data-testid': 'verdict' });
  /** The current query. @type {Record<string, string>} */
  #query = {};
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
      h('div', { class: 'row' }, h('h2', {}, 'Audit log'), h('span', { class: 'push' }, this.#verify)),
      this.#verdict,
      this.#form,
      this.notice,
      this.#damaged,
      this.#list,
      h('div', { class: 'row' }, this.#more, this.#scanned),
    );
  }

  async load() {
    await this.#search();
  }

  async #search() {
    const fields = new FormData(this.#form);
    this.#query = {};
    for (const [name, value] of fields) {
      if (typeof value !== 'string' || value.trim() === '') continue;
      const isTime = name === 'since' || name === 'until';
      this.#query[name] = isTime ? new Date(value).toISOString() : value.trim();
    }
    this.#next = null;
    this.#damagedLines = 0;
    fill(this.#list);
    await this.#older();
  }

  async #older() {
    const { lines, next, lookedAt, damagedLines } = await get('audit', { ...this.#query, before: this.#next });
    this.#next = next;
    this.#damagedLines += damagedLines;
    this.#damaged.hidden = this.#damagedLines === 0;
    this.#damaged.textContent = `${formatCount(this.#damagedLines)} damaged ${this.#damagedLines === 1 ? 'line is' : 'lines are'} not shown. Verify the chain to see where the log was changed.`;
    this.#list.append(...lines.map((line) => h('li', {}, lineView(line))));
    this.#more.hidden = next === null;
    this.#scanned.textContent =
      lines.length === 0 && next !== null ? `No match in the last ${formatBytes(lookedAt)}. Search older lines.` : '';
    const isEmpty = this.#list.childElementCount === 0 && next === null;
    this.showNotice(isEmpty ? 'No line matches. Clear the fields to see all lines.' : '');
  }

  async #runVerification() {
    this.#verify.disabled = true;
    this.#verdict.textContent = 'Verifying…';
    this.#verdict.dataset.tone = 'quiet';
    try {
      /** @type {Api.AuditVerification} */
      const { isWhole, lines, unconfirmed, bytes, fault } = await send('POST', 'audit/verify');
      this.#verdict.dataset.tone = isWhole === null ? 'warn' : isWhole ? 'good' : 'bad';
      this.#verdict.textContent = isWhole
        ? `The chain is intact: ${formatCount(lines ?? 0)} lines, ${formatBytes(bytes)}${unconfirmed ? `; the store has not confirmed the last ${formatCount(unconfirmed)}` : ''}.`
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
