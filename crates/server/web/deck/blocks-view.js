// <qd-deck-blocks>: blocked clients, and lifting a block.

import { fill, h } from '../shared/dom.js';
import { visible } from '../shared/visible.js';
import { get, send } from './api.js';
import { formatTime, shortId } from './format.js';

export class BlocksView extends HTMLElement {
  #list = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Blocks', 'data-testid': 'blocks' });
  #notice = h('p', { class: 'notice', role: 'status' });

  connectedCallback() {
    if (!this.#list.isConnected) this.append(h('h2', {}, 'Blocked clients'), this.#notice, this.#list);
  }

  async refresh() {
    const { blocks, total } = await get('blocks');
    if (total === 0)
      return fill(
        this.#list,
        h(
          'p',
          { class: 'empty' },
          'No client is blocked. The agent blocks abusive users for a limited time.',
        ),
      );
    const head = ['Client', 'Until', 'Message to the user', ''].map((name) => h('th', { scope: 'col' }, name));
    const rows = blocks.map((block) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row', title: block.clientId }, shortId(block.clientId)),
        h('td', {}, formatTime(block.untilMs)),
        h('td', {}, h('bdi', {}, visible(block.message || '–'))),
        h(
          'td',
          {},
          h(
            'button',
            {
              'aria-label': `Lift the block of ${block.clientId}`,
              'data-testid': 'lift',
              onclick: () => this.#lift(block.clientId),
            },
            'Lift',
          ),
        ),
      ),
    );
    fill(
      this.#list,
      h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
      total > blocks.length && h('p', { class: 'quiet' }, `${total - blocks.length} more, which end sooner, are not shown.`),
    );
  }

  /** @param {string} client */
  async #lift(client) {
    try {
      await send('DELETE', `blocks/${encodeURIComponent(client)}`);
      this.#notice.textContent = 'The block is lifted.';
    } catch (error) {
      this.#notice.textContent = error instanceof Error ? error.message : String(error);
    }
    await this.refresh();
  }
}

customElements.define('qd-deck-blocks', BlocksView);
