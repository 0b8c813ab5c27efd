// <qd-deck-quarantines>: tools in quarantine because their calls did not end, and lifting it.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { formatCount } from './format.js';

export class QuarantinesView extends HTMLElement {
  #list = h('div', { 'data-testid': 'quarantines' });
  #notice = h('p', { class: 'notice', role: 'status' });

  connectedCallback() {
    if (!this.#list.isConnected) this.append(this.#notice, this.#list);
  }

  async refresh() {
    const { quarantines } = await get('quarantines');
    if (quarantines.length === 0) return fill(this.#list);
    const head = ['Tool', 'Stuck threads', 'Times', 'Next trial', ''].map((name) => h('th', { scope: 'col' }, name));
    const rows = quarantines.map((tool) =>
      h(
        'tr',
        { 'data-testid': 'quarantine' },
        h('th', { scope: 'row' }, tool.toolId),
        h('td', {}, formatCount(tool.stuckThreads)),
        h('td', {}, formatCount(tool.strikes)),
        h('td', {}, trial(tool)),
        h(
          'td',
          {},
          h(
            'button',
            {
              'aria-label': `Put ${tool.toolId} back into service`,
              'data-testid': 'lift-quarantine',
              onclick: () => this.#lift(tool.toolId),
            },
            'Lift',
          ),
        ),
      ),
    );
    fill(
      this.#list,
      h('h2', {}, 'Out of service'),
      h(
        'p',
        { class: 'quiet' },
        'Calls of these tools did not end at their deadline. The model is told that they are unavailable.',
      ),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Tools out of service' },
        h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
      ),
    );
  }

  /** @param {string} tool */
  async #lift(tool) {
    try {
      await send('DELETE', `quarantines/${encodeURIComponent(tool)}`);
      this.#notice.textContent = `${tool} is in service again.`;
    } catch (error) {
      this.#notice.textContent = error instanceof Error ? error.message : String(error);
    }
    await this.refresh();
  }
}

/** When a trial call is allowed. @param {Api.Quarantine} tool */
function trial({ stuckThreads, retryAfterMs }) {
  return stuckThreads > 0 ? 'when its threads end' : `in ${formatCount(Math.ceil(retryAfterMs / 1000))} s`;
}

customElements.define('qd-deck-quarantines', QuarantinesView);
