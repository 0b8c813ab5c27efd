// The records that a message cites: numbered in the text, and listed below it.

import { fill, h } from '../shared/dom.js';

/** @typedef {import('./records.js').Records} Records */

export class Sources {
  /** @type {string[]} */
  #cited = [];
  /** @type {Records | null} */
  #records = null;
  #list = h('ol', { class: 'sources', 'aria-label': 'Sources' });
  #drawn = '';

  /** @param {Records} records */
  begin(records) {
    this.#records = records;
  }

  /**
   * The link to a record; `null` for one that this conversation has not seen.
   *
   * @type {import('../shared/inline.js').Cite}
   */
  cite = (id, label) => {
    const record = this.#records?.find(id);
    if (!record) return null;
    if (!this.#cited.includes(id)) this.#cited.push(id);
    const number = this.#cited.indexOf(id) + 1;
    const title = record.title ?? id;
    return h(
      'button',
      {
        type: 'button',
        class: label ? 'record-link' : 'cite',
        title,
        'data-testid': 'citation',
        'data-record': id,
        'aria-label': label ? null : `Source ${number}: ${title}`,
        onclick: open,
      },
      label ?? String(number),
    );
  };

  /**
   * Lists what was cited, at the end of a message that is complete.
   *
   * @param {Element} after
   * @param {boolean} isComplete
   */
  show(after, isComplete) {
    if (!isComplete || this.#cited.length === 0) return this.#list.remove();
    const drawn = this.#cited.join();
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      fill(this.#list, ...this.#cited.map((id) => this.#item(id)));
    }
    after.append(this.#list);
  }

  /** @param {string} id */
  #item(id) {
    const title = this.#records?.find(id)?.title ?? id;
    const number = h('strong', { 'aria-hidden': 'true' }, String(this.#cited.indexOf(id) + 1));
    return h(
      'li',
      {},
      h('button', { type: 'button', 'data-record': id, 'data-testid': 'source', onclick: open }, number, title),
    );
  }
}

/** @param {Event} event */
function open(event) {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  button.dispatchEvent(new CustomEvent('cite', { bubbles: true, detail: button.dataset.record }));
}
