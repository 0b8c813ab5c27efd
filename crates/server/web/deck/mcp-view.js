// <qd-deck-mcp>: the MCP servers elsewhere whose tools are imported, and what they changed since.
//
// Names, versions, reasons and differences come from those servers. All of it is inserted as text.

import { fill, h } from '../shared/dom.js';
import { visible } from '../shared/visible.js';
import { get } from './api.js';
import { differenceView } from './difference.js';
import { formatCount, formatMs, formatTime } from './format.js';
import { View } from './view.js';

const REFRESH_INTERVAL_MS = 10_000;
/** @type {Record<Api.UpstreamState, [string, string]>} what a state is called, and the health it is coloured as */
const states = {
  idle: ['not used yet', 'idle'],
  connecting: ['connecting', 'idle'],
  connected: ['connected', 'well'],
  disconnected: ['disconnected', 'failing'],
};
/** @type {Record<Api.PinState, [string, string]>} */
const pins = {
  unchecked: ['not compared yet', 'idle'],
  matches: ['as imported', 'well'],
  drifted: ['changed', 'failing'],
  missing: ['no longer published', 'failing'],
};

class McpView extends View {
  #body = h('div', { class: 'servers', 'data-testid': 'mcp' });
  /** What is shown, so that a refresh without news disturbs no reader. */
  #shown = '';

  build() {
    this.append(this.notice, this.#body);
  }

  async load() {
    this.every(REFRESH_INTERVAL_MS, () => this.#refresh());
    await this.#refresh();
  }

  async #refresh() {
    const { servers } = await get('mcp');
    const news = JSON.stringify(servers);
    if (news === this.#shown) return;
    this.#shown = news;
    const open = this.#openDetails();
    fill(this.#body, ...(servers.length === 0 ? [none()] : [overview(servers), ...servers.map((server) => section(server, open))]));
  }

  /** The tools whose difference is folded or unfolded by hand. @returns {Map<string, boolean>} */
  #openDetails() {
    const all = this.#body.querySelectorAll('details[data-key]');
    return new Map([...all].map((one) => [one.getAttribute('data-key') ?? '', one.hasAttribute('open')]));
  }
}

function none() {
  return h(
    'p',
    { class: 'empty' },
    'No MCP server is configured. ',
    h('code', {}, 'quarterdeck mcp add NAME'),
    ' adds one, ',
    h('code', {}, 'quarterdeck mcp import NAME'),
    ' imports its tools.',
  );
}

/** @param {Api.UpstreamRow[]} servers */
function overview(servers) {
  const names = ['Server', 'State', 'Since', 'Restarts', 'Calls', 'Failures', 'Refused requests', 'p50', 'p95', 'Tools'];
  const numeric = new Set(names.slice(3, 9));
  const head = names.map((name) => h('th', { scope: 'col', class: numeric.has(name) && 'number' }, name));
  const number = (/** @type {string} */ text) => h('td', { class: 'number' }, text);
  const rows = servers.map((server) => {
    const [word, health] = states[server.state] ?? [server.state, 'idle'];
    const { latency } = server;
    return h(
      'tr',
      { 'data-testid': 'server-row', 'data-state': server.state },
      h('th', { scope: 'row' }, h('a', { href: `#mcp/${server.name}`, onclick: jump(server.name) }, server.name)),
      h('td', {}, mark(word, health)),
      h('td', {}, formatTime(server.sinceMs)),
      number(formatCount(server.restarts)),
      number(formatCount(server.calls)),
      number(formatCount(server.failures)),
      number(formatCount(server.refusedRequests)),
      number(server.calls === 0 ? '–' : formatMs(latency.p50)),
      number(server.calls === 0 ? '–' : formatMs(latency.p95)),
      h('td', {}, toolCount(server)),
    );
  });
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'MCP servers' },
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
  );
}

/** Leads to a server's section. @param {string} name */
function jump(name) {
  return (/** @type {Event} */ event) => {
    const heading = document.getElementById(`mcp-${name}`);
    if (!heading) return;
    event.preventDefault();
    heading.focus();
    heading.scrollIntoView({ block: 'start' });
  };
}

/** @param {Api.UpstreamRow} server @param {Map<string, boolean>} open */
function section(server, open) {
  const said = server.server;
  const facts = [
    [server.transport === 'http' ? 'URL' : 'Program', server.address],
    ['Says it is', said ? `${said.name} ${said.version}` : 'not known yet'],
    ['MCP revision', said?.protocolVersion ?? 'not known yet'],
    server.trouble ? ['Trouble', server.trouble] : [],
    server.notImported.length > 0 ? ['Not imported', server.notImported.join(', ')] : [],
  ].filter((fact) => fact.length > 0);
  return h(
    'section',
    { 'data-testid': 'server', 'aria-labelledby': `mcp-${server.name}` },
    h('h2', { id: `mcp-${server.name}`, tabindex: -1 }, server.name),
    h(
      'dl',
      { class: 'fields' },
      ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, h('code', {}, visible(value)))]),
    ),
    server.state === 'disconnected' &&
      server.tools.length > 0 &&
      h('p', { class: 'bad', role: 'alert' }, 'The model is told that its tools are unavailable. The connection is retried.'),
    server.tools.length === 0
      ? h('p', { class: 'quiet' }, 'No tool of it is imported.')
      : tools(server),
    ...server.tools.filter((tool) => tool.state === 'drifted' || tool.state === 'missing').map((tool) => drift(server, tool, open)),
  );
}

/** @param {Api.UpstreamRow} server */
function tools(server) {
  const head = ['Tool', 'Name there', 'State', 'Pinned', 'Published'].map((name) => h('th', { scope: 'col' }, name));
  const rows = server.tools.map((tool) => {
    const [word, health] = pins[tool.state] ?? [tool.state, 'idle'];
    return h(
      'tr',
      { 'data-testid': 'upstream-tool', 'data-state': tool.state },
      h('th', { scope: 'row' }, tool.toolId),
      h('td', {}, visible(tool.name)),
      h('td', {}, mark(word, health)),
      h('td', {}, digest(tool.pinned)),
      h('td', {}, tool.live === null ? '–' : digest(tool.live)),
    );
  });
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Tools of ${server.name}` },
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
  );
}

/** What changed in a tool, and what to do. @param {Api.UpstreamRow} server @param {Api.UpstreamTool} tool @param {Map<string, boolean>} open */
function drift(server, tool, open) {
  const isMissing = tool.state === 'missing';
  const key = `${server.name}/${tool.toolId}`;
  return h(
    'details',
    { class: 'drift', 'data-key': key, 'data-testid': 'drift', open: open.get(key) ?? true },
    h(
      'summary',
      {},
      h('strong', {}, tool.toolId),
      isMissing ? ' is no longer published; it is unavailable' : ' is not what was imported; it is unavailable',
    ),
    tool.difference !== null && differenceView(tool.difference, `What ${server.name} changed in ${tool.toolId}`),
    h(
      'p',
      { class: 'quiet' },
      isMissing ? 'If that is meant, remove its folder. ' : 'Read it as you would read code. ',
      h('code', {}, `quarterdeck mcp update ${server.name}`),
      isMissing ? ' shows what is published now.' : ' shows the same difference; --accept writes it into the folder.',
    ),
  );
}

/** @param {string} word @param {string} health */
function mark(word, health) {
  return h('span', { class: 'health', 'data-health': health }, word);
}

/** Enough of a digest to compare by eye; the rest is in its title. @param {string} text */
function digest(text) {
  return h('code', { title: text }, text.replace(/^sha256:/, '').slice(0, 12));
}

/** @param {Api.UpstreamRow} server */
function toolCount({ tools }) {
  const drifted = tools.filter((tool) => tool.state === 'drifted' || tool.state === 'missing').length;
  return drifted > 0 ? mark(`${drifted} of ${tools.length} changed`, 'failing') : formatCount(tools.length);
}

customElements.define('qd-deck-mcp', McpView);
