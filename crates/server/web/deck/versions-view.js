// <qd-deck-versions>: the loaded versions of the registry side by side, and which sessions get which.

import { fill, h } from '../shared/dom.js';
import { get } from './api.js';
import { formatCount, formatMs, formatShare } from './format.js';

export class VersionsView extends HTMLElement {
  #list = h('div', { 'data-testid': 'versions' });

  connectedCallback() {
    if (!this.#list.isConnected) this.append(this.#list);
  }

  async refresh() {
    const { versions, stored, rollout } = await get('versions');
    const head = ['', ...versions.map((version) => version.version)].map((name) => h('th', { scope: 'col' }, name));
    const rows = facts.map(([name, value]) =>
      h('tr', {}, h('th', { scope: 'row' }, name), ...versions.map((version) => h('td', {}, value(version)))),
    );
    fill(
      this.#list,
      h('h2', {}, 'Versions'),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Versions side by side' },
        h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
      ),
      h('h2', {}, 'Rollout'),
      h('ul', { 'data-testid': 'rollout' }, ...rules(rollout, versions).map((rule) => h('li', {}, rule))),
      h(
        'p',
        { class: 'quiet' },
        `${stored.length === 0 ? 'No other version is stored.' : `Stored, not loaded: ${formatCount(stored.length)}.`} `,
        h('code', {}, 'quarterdeck registry'),
        ' activates and retires versions and sets the rollout.',
      ),
    );
  }
}

/** @type {[string, (version: Api.VersionRow) => string][]} */
const facts = [
  ['State', ({ state, isBase }) => `${state}${isBase ? ', of the start' : ''}`],
  ['Open sessions', ({ sessions }) => formatCount(sessions)],
  ['Sessions', ({ counters }) => formatCount(counters.sessions)],
  ['Calls', ({ counters }) => formatCount(counters.calls)],
  ['Errors', ({ counters }) => `${formatCount(counters.errors)} (${formatShare(counters.errors, counters.calls)})`],
  ['Refused', ({ counters }) => formatCount(counters.refused)],
  ['Asked for approval', ({ counters }) => formatCount(counters.confirmations['requested'] ?? 0)],
  ['Approved', ({ counters }) => formatCount(counters.confirmations['approved'] ?? 0)],
  ['Denied', ({ counters }) => formatCount(counters.confirmations['denied'] ?? 0)],
  ['Thumbs up', ({ counters }) => formatCount(counters.feedback['up'] ?? 0)],
  ['Thumbs down', ({ counters }) => formatCount(counters.feedback['down'] ?? 0)],
  ['Time p50', ({ counters }) => formatMs(counters.p50)],
  ['Time p95', ({ counters }) => formatMs(counters.p95)],
  ['Tokens per answer', ({ counters }) => formatCount(counters.tokensAverage)],
  ['Tokens p95', ({ counters }) => formatCount(counters.tokensP95)],
];

/**
 * The rules in the order in which they are tried.
 *
 * @param {Api.Rollout} rollout
 * @param {Api.VersionRow[]} versions
 * @returns {string[]}
 */
function rules(rollout, versions) {
  const name = (/** @type {string} */ digest) =>
    versions.find((version) => version.digest === digest)?.version ?? `${digest.slice(0, 8)} (not loaded, passed over)`;
  const rest = versions.find((version) => version.isRest);
  return [
    ...rollout.headerFrom.map((key) => `Key ${key}: the version that its header names`),
    ...rollout.claims.map((rule) => `Claim ${rule.claim}: ${name(rule.version)}`),
    ...rollout.organisations.map((rule) => `Organisation ${rule.organisation}: ${name(rule.version)}`),
    ...rollout.shares.map((rule) => `${rule.percent} % of clients: ${name(rule.version)}`),
    `All others: ${rest?.version ?? 'none'}`,
  ];
}

customElements.define('qd-deck-versions', VersionsView);
