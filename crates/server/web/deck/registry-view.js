// <qd-deck-registry>: the versions, the tools that new sessions get, and the changes since the previous registry.

import { fill, h } from '../shared/dom.js';
import { json } from '../shared/values.js';
import { get } from './api.js';
import { VersionsView } from './versions-view.js';
import { View } from './view.js';

/** @type {Record<string, string>} */
const effects = { breaks: 'breaks callers', changes: 'changes', adds: 'adds' };
/** @type {Record<string, string>} */
const sides = { none: 'computes', read_only: 'reads', writes: 'writes' };

class RegistryView extends View {
  #body = h('div', { 'data-testid': 'registry' });
  #versions = new VersionsView();

  build() {
    this.append(this.notice, this.#versions, this.#body);
  }

  async load() {
    await this.#versions.refresh();
    const { version, contentHash, commit, isLocked, tools, change } = await get('registry');
    const facts = [
      ['Version', version],
      ['Commit', commit ?? 'unknown'],
      ['Content', contentHash],
      ['Reload', isLocked ? 'locked: operators activate versions' : 'possible'],
    ];
    fill(
      this.#body,
      h('h2', {}, 'Registry'),
      h('dl', { class: 'fields' }, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, h('code', {}, value))])),
      h('h2', {}, 'Changes'),
      ...changed(change),
      h('h2', {}, 'Tools'),
      tools.length === 0
        ? h('p', { class: 'empty' }, 'No tool is loaded. ', h('code', {}, 'quarterdeck new NAME'), ' creates one.')
        : table(tools),
    );
  }
}

/** @param {Api.RegistryChange | null} change @returns {Node[]} */
function changed(change) {
  if (!change)
    return [
      h(
        'p',
        { class: 'empty' },
        'This is the first registry of this server. Changes appear here after a tool changes and the server restarts.',
      ),
    ];
  const from = h(
    'p',
    {},
    'Compared with ',
    h('code', {}, change.previous),
    change.isBreaking ? '. Some changes break callers.' : '. Nothing breaks callers.',
  );
  if (change.changes.length === 0) return [from, h('p', { class: 'empty' }, 'No change that callers notice.')];
  const items = change.changes.map((one) =>
    h(
      'li',
      { 'data-testid': 'change', 'data-effect': one.effect },
      h('span', { class: 'effect', 'data-effect': one.effect }, effects[one.effect] ?? one.effect),
      ' ',
      h('code', {}, one.tool),
      ` ${one.what}`,
      one.example !== undefined && h('details', {}, h('summary', {}, 'accepted before, refused now'), json(one.example)),
    ),
  );
  return [from, h('ul', { class: 'changes' }, ...items)];
}

/** @param {Api.RegistryTool[]} tools */
function table(tools) {
  const head = ['Tool', 'Version', 'Kind', 'Does', 'Approval', 'Modes', 'Summary'].map((name) =>
    h('th', { scope: 'col' }, name),
  );
  const rows = tools.map((tool) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, h('a', { href: `#playground/${tool.id}` }, tool.id)),
      h('td', {}, tool.version),
      h('td', {}, tool.category),
      h('td', {}, sides[tool.sideEffects] ?? tool.sideEffects),
      h('td', {}, tool.requiresConfirmation === true ? 'always' : tool.requiresConfirmation === 'policy' ? 'sometimes' : 'no'),
      h('td', {}, tool.allowedModes.join(', ')),
      h('td', { class: 'wide' }, tool.summary),
    ),
  );
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Tools of the registry' },
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
  );
}

customElements.define('qd-deck-registry', RegistryView);
