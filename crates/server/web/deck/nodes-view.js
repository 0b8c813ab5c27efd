// <qd-deck-nodes>: the nodes that share the store, and how each is.

import { fill, h } from '../shared/dom.js';
import { visible } from '../shared/visible.js';
import { get } from './api.js';
import { formatCount, formatMs, formatTime } from './format.js';
import { View } from './view.js';

/** Nodes renew their rows as often. */
const REFRESH_INTERVAL_MS = 3_000;
/** @type {Record<Api.DeckNode['state'], [string, string]>} what a state is called, and the health it is coloured as */
const states = {
  alive: ['alive', 'well'],
  late: ['late', 'slow'],
  dead: ['dead', 'failing'],
  stopped: ['may not write', 'failing'],
};

class NodesView extends View {
  #body = h('div', { 'data-testid': 'nodes' });
  /** Announces changes of state alone: numbers change all the time. */
  #news = h('p', { class: 'quiet', role: 'status', 'data-testid': 'nodes-news' });
  /** @type {Map<string, string>} */
  #known = new Map();

  build() {
    this.append(h('h2', {}, 'Nodes'), this.notice, this.#news, this.#body);
  }

  async load() {
    this.every(REFRESH_INTERVAL_MS, () => this.#refresh());
    await this.#refresh();
  }

  async #refresh() {
    const { nodes } = await get('nodes');
    this.#announce(nodes);
    // A table that is drawn again would lose the focus of who scrolls it.
    const hasFocus = this.#body.contains(document.activeElement);
    fill(this.#body, nodes.length === 0 ? alone() : table(nodes));
    const region = this.#body.querySelector('.scroll');
    if (hasFocus && region instanceof HTMLElement) region.focus({ preventScroll: true });
  }

  /** @param {Api.DeckNode[]} nodes */
  #announce(nodes) {
    const changed = nodes.filter((node) => this.#known.get(node.name) !== node.state);
    const gone = [...this.#known.keys()].filter((name) => !nodes.some((node) => node.name === name));
    const isFirst = this.#known.size === 0;
    this.#known = new Map(nodes.map((node) => [node.name, node.state]));
    if (isFirst || changed.length + gone.length === 0) return;
    const words = [
      ...changed.map((node) => `${visible(node.name)} is ${states[node.state]?.[0] ?? node.state}`),
      ...gone.map((name) => `${visible(name)} has left`),
    ];
    this.#news.textContent = `${words.join('; ')}.`;
  }
}

function alone() {
  return h(
    'p',
    { class: 'empty' },
    'This server is alone on its store. With ',
    h('code', {}, 'store.url'),
    ' on PostgreSQL, several nodes share one.',
  );
}

/** @param {Api.DeckNode[]} nodes */
function table(nodes) {
  const names = ['Node', 'State', 'Address', 'Version', 'Sessions', 'Calls', 'Row unchanged', 'Notification lag', 'Started'];
  const numeric = new Set(names.slice(4, 8));
  const head = names.map((name) => h('th', { scope: 'col', class: numeric.has(name) && 'number' }, name));
  const number = (/** @type {string} */ text) => h('td', { class: 'number' }, text);
  const rows = nodes.map((node) => {
    const [word, health] = states[node.state] ?? [node.state, 'idle'];
    return h(
      'tr',
      { 'data-testid': 'node-row', 'data-state': node.state },
      h('th', { scope: 'row' }, visible(node.name), node.isSelf && h('span', { class: 'quiet' }, ' (this one)')),
      h('td', {}, h('span', { class: 'health', 'data-health': health }, word)),
      h('td', {}, h('code', {}, visible(node.address))),
      h('td', {}, visible(node.version)),
      number(formatCount(node.sessions)),
      number(formatCount(node.calls)),
      number(formatMs(node.unchangedMs)),
      number(node.lagMs === null ? '–' : formatMs(node.lagMs)),
      h('td', {}, formatTime(node.startedMs)),
    );
  });
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Nodes' },
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
  );
}

customElements.define('qd-deck-nodes', NodesView);
