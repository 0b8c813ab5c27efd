// <qd-record>: a record as the agent has seen it in this conversation.

import { fill, focusedBeside, h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { showMarkdown } from '../shared/markdown.js';
import { fields } from '../shared/values.js';

/** @typedef {import('./records.js').Records} Records */
/** @typedef {import('./records.js').KnownRecord} KnownRecord */

export class RecordPanel extends HTMLElement {
  /** The element to focus on close. @type {HTMLElement | null} */
  #from = null;

  connectedCallback() {
    this.hidden = true;
    this.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
  }

  /** @param {string} id @param {Records} records */
  open(id, records) {
    const record = records.find(id);
    if (!record) return;
    if (this.hidden) this.#from = focusedBeside(this);
    const heading = h('h2', { tabindex: -1, id: 'record-title' }, record.title ?? id);
    const close = h(
      'button',
      { type: 'button', class: 'plain', 'aria-label': 'Close', onclick: () => this.close() },
      icon('cross'),
    );
    const aside = h('aside', { 'aria-labelledby': 'record-title', 'data-testid': 'record' });
    fill(
      aside,
      h('header', {}, heading, close),
      about(record),
      ...text(record, (next) => this.open(next, records), records),
    );
    fill(this, aside);
    this.hidden = false;
    heading.focus();
  }

  close() {
    if (this.hidden) return;
    this.hidden = true;
    fill(this);
    this.#from?.focus();
  }
}

/** @param {KnownRecord} record */
function about(record) {
  const facts = [record.type, record.source_type, record.last_updated && `updated ${record.last_updated}`];
  const words = [...new Set(facts.filter(Boolean))].join(' · ');
  const address = record.url && /^https?:\/\//i.test(record.url) ? record.url : null;
  return h(
    'p',
    { class: 'quiet' },
    h('code', {}, record.id),
    h('br'),
    words,
    address && h('br'),
    address && h('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, address),
  );
}

/** @param {KnownRecord} record @param {(id: string) => void} open @param {Records} records @returns {Node[]} */
function text(record, open, records) {
  const body = h('div', { class: 'words' });
  const cite = (/** @type {string} */ id, /** @type {string | null} */ label) =>
    records.find(id)
      ? h('button', { type: 'button', class: 'record-link', onclick: () => open(id) }, label ?? id)
      : null;
  const full = record.full_text;
  // The title is shown above.
  showMarkdown(body, (full ?? record.snippet ?? '').replace(/^\s*#\s[^\n]*\n/, ''), cite);
  const nodes = [
    full ? null : h('p', { class: 'note' }, 'The agent has seen only this passage of the record.'),
    body,
    record.metadata && Object.keys(record.metadata).length > 0 ? fields(record.metadata) : null,
  ];
  return nodes.filter((node) => node !== null);
}

customElements.define('qd-record', RecordPanel);
