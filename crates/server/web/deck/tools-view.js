// <qd-deck-tools>: the tools and how they fare, at a glance and over time.

import { Chart, sparkline } from '../shared/chart.js';
import { fill, h } from '../shared/dom.js';
import { get } from './api.js';
import { QuarantinesView } from './quarantines-view.js';
import { Samples } from './samples.js';
import { View } from './view.js';
import { milliseconds, share, short, whole } from './words.js';

/** @typedef {{ id: string, version: string, category: string, summary: string, health: string, latencyBudgetMs: number, lately: { calls: number, errors: number }, figures: Record<string, number> }} Tool */

/** How often the figures are sampled. */
const EVERY = 10_000;
/** @type {Record<string, string>} */
const healths = { idle: 'idle', well: 'well', slow: 'slow', failing: 'failing', unclear: 'too few to tell' };

class ToolsView extends View {
  #glance = h('dl', { class: 'glance', 'data-testid': 'glance' });
  #table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Tools' });
  #quarantines = new QuarantinesView();
  #heading = h('h2', { 'data-testid': 'chart-heading' });
  #charts = [new Chart(), new Chart(), new Chart()];
  #range = h(
    'select',
    { 'data-testid': 'range', onchange: () => this.#change() },
    h('option', { value: 'hour' }, 'Last hour'),
    h('option', { value: 'days' }, 'Last two days'),
  );
  #samples = new Samples('hour');
  /** The tool whose figures are drawn; all of them when there is none. */
  #chosen = '';
  /** @type {any} */
  #overview = null;

  build() {
    const charts = this.#charts.map((chart) => h('div', { class: 'card' }, h('h3'), chart));
    this.append(
      this.notice,
      this.#glance,
      this.#quarantines,
      h(
        'section',
        {},
        h('div', { class: 'row' }, this.#heading, h('label', { class: 'push' }, 'Range ', this.#range)),
        h('div', { class: 'charts', 'data-testid': 'charts' }, ...charts),
      ),
      h('section', {}, h('h2', {}, 'Tools'), this.#table),
    );
  }

  async load() {
    await this.#refresh();
    this.every(EVERY, () => this.#refresh());
  }

  #change() {
    this.#samples = new Samples(this.#range.value === 'days' ? 'days' : 'hour');
    void this.attempt(() => this.#refresh());
  }

  async #refresh() {
    const samples = this.#samples;
    const [overview, columns] = await Promise.all([
      get('overview'),
      get('series', { range: samples.range, after: samples.after }),
      this.#quarantines.refresh(),
    ]);
    samples.add(columns);
    this.#overview = overview;
    this.#draw();
  }

  #draw() {
    const { sessions, registry, models, audit, tools } = this.#overview;
    const entries = [
      [
        'Sessions open',
        `${whole(sessions.active)}`,
        `${whole(sessions.text)} written, ${whole(sessions.voice)} spoken, ${whole(sessions.total)} since the start`,
      ],
      [
        'Registry',
        registry.version,
        `${whole(registry.tools)} tools, commit ${registry.commit ? short(registry.commit) : 'unknown'}`,
      ],
      ['Answers in writing', models.text, ''],
      ['Answers in speech', models.voice ?? 'nobody', ''],
      ['Audit', audit.isKept ? 'kept' : 'not kept', audit.lostLines > 0 ? `${whole(audit.lostLines)} lines were lost` : ''],
    ];
    fill(
      this.#glance,
      ...entries.map(([name, value, more]) =>
        h('div', { class: 'card' }, h('dt', {}, name), h('dd', {}, value, more && h('small', { class: 'quiet' }, more))),
      ),
    );
    this.#drawTable([...tools].sort((one, other) => other.lately.calls - one.lately.calls || one.id.localeCompare(other.id)));
    this.#drawCharts();
  }

  /** @param {Tool[]} tools */
  #drawTable(tools) {
    if (tools.length === 0) {
      return fill(
        this.#table,
        h('p', { class: 'empty' }, 'No tool is loaded. ', h('code', {}, 'quarterdeck new NAME'), ' makes a first one.'),
      );
    }
    const names = ['Tool', 'Health', 'Calls', 'Errors', 'Refused', 'p50', 'p95', 'Tokens, p95', 'Calls over time'];
    const focused = document.activeElement?.getAttribute('data-tool');
    const head = h(
      'thead',
      {},
      h(
        'tr',
        {},
        ...names.map((name, place) => h('th', { scope: 'col', class: place > 1 && place < 8 ? 'number' : null }, name)),
      ),
    );
    fill(this.#table, h('table', {}, head, h('tbody', {}, ...tools.map((tool) => this.#row(tool)))));
    // It was drawn anew under whoever was there.
    if (focused) this.#table.querySelector(`button[data-tool="${CSS.escape(focused)}"]`)?.dispatchEvent(new Event('refocus'));
  }

  /** @param {Tool} tool */
  #row(tool) {
    const { figures, lately } = tool;
    const isChosen = tool.id === this.#chosen;
    const choose = h(
      'button',
      {
        class: 'link',
        'data-tool': tool.id,
        'aria-pressed': String(isChosen),
        title: tool.summary,
        onclick: () => this.#choose(tool.id),
      },
      tool.id,
    );
    choose.addEventListener('refocus', () => choose.focus());
    const number = (/** @type {string} */ text) => h('td', { class: 'number' }, text);
    const none = figures.calls === 0;
    return h(
      'tr',
      { 'data-testid': 'tool-row', 'data-health': tool.health },
      h('th', { scope: 'row' }, choose, h('small', { class: 'quiet' }, `${tool.category} ${tool.version}`)),
      h('td', {}, h('span', { class: 'health', 'data-health': tool.health }, healths[tool.health] ?? tool.health)),
      number(whole(figures.calls)),
      number(share(figures.errors, figures.calls)),
      number(whole(figures.refused)),
      number(none ? '–' : milliseconds(figures.p50)),
      number(none ? '–' : milliseconds(figures.p95)),
      number(none ? '–' : whole(figures.tokensP95)),
      h('td', {}, lately.calls > 0 && sparkline(this.#samples.of(tool.id, 'calls').map(Number))),
    );
  }

  /** @param {string} tool */
  #choose(tool) {
    this.#chosen = this.#chosen === tool ? '' : tool;
    this.#draw();
  }

  #drawCharts() {
    const samples = this.#samples;
    const chosen = this.#chosen;
    this.#heading.textContent = chosen || 'All tools';
    const row = (/** @type {string} */ name) => (chosen ? samples.of(chosen, name) : samples.all(name));
    const [calls, times, tokens] = this.#charts;
    const of = chosen ? ` of ${chosen}` : '';
    title(calls, `Calls every ${samples.range === 'hour' ? 'ten seconds' : 'five minutes'}`);
    calls.show({
      title: `Calls${of}`,
      at: samples.at,
      format: whole,
      lines: [
        { name: 'calls', values: row('calls'), fills: true },
        { name: 'errors', values: row('errors'), tone: 'bad' },
        { name: 'refused', values: row('refused'), tone: 'warn' },
      ],
    });
    if (chosen) {
      title(times, 'Latency');
      times.show({
        title: `Latency${of}`,
        at: samples.at,
        format: milliseconds,
        lines: [
          { name: 'p95', values: row('p95'), fills: true },
          { name: 'p50', values: row('p50'), tone: 'quiet' },
        ],
      });
      title(tokens, 'Tokens of an answer');
      tokens.show({
        title: `Tokens of an answer${of}`,
        at: samples.at,
        format: whole,
        lines: [
          { name: 'p95', values: row('tokensP95'), fills: true },
          { name: 'average', values: row('tokens'), tone: 'quiet' },
        ],
      });
      return;
    }
    // Percentiles of different tools do not add up; the slowest and the longest count.
    title(times, 'Latency of the slowest tool');
    times.show({
      title: 'Latency of the slowest tool',
      at: samples.at,
      format: milliseconds,
      lines: [
        { name: 'p95', values: samples.most('p95'), fills: true },
        { name: 'p50', values: samples.most('p50'), tone: 'quiet' },
      ],
    });
    title(tokens, 'Sessions open');
    tokens.show({
      title: 'Sessions open',
      at: samples.at,
      format: whole,
      lines: [
        { name: 'written', values: samples.text, fills: true },
        { name: 'spoken', values: samples.voice, tone: 'warn' },
      ],
    });
  }
}

/** @param {Chart} chart @param {string} text */
function title(chart, text) {
  if (chart.previousElementSibling) chart.previousElementSibling.textContent = text;
}

customElements.define('qd-deck-tools', ToolsView);
