// <qd-deck-tools>: tool health, now and over time.

import { Chart, sparkline } from '../shared/chart.js';
import { fill, h } from '../shared/dom.js';
import { AlarmsView } from './alarms-view.js';
import { get } from './api.js';
import { modelTroubleCard } from './model-trouble-card.js';
import { Series } from './series.js';
import { TasksView } from './tasks-view.js';
import { View } from './view.js';
import { formatCount, formatMs, formatShare, shortId } from './format.js';

const REFRESH_INTERVAL_MS = 10_000;
/** @type {Record<string, string>} */
const healths = { idle: 'idle', well: 'healthy', slow: 'slow', failing: 'failing', unclear: 'too few calls' };

class ToolsView extends View {
  #trouble = h('div', { class: 'model-trouble' });
  #glance = h('dl', { class: 'glance', 'data-testid': 'glance' });
  #table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Tools' });
  #alarms = new AlarmsView();
  #tasks = new TasksView();
  #heading = h('h2', { 'data-testid': 'chart-heading' });
  #charts = [new Chart(), new Chart(), new Chart()];
  #range = h(
    'select',
    { 'data-testid': 'range', onchange: () => this.#change() },
    h('option', { value: 'hour' }, 'Last hour'),
    h('option', { value: 'days' }, 'Last two days'),
  );
  #series = new Series('hour');
  /** The tool in the charts; all tools when empty. */
  #chosen = '';
  /** @type {Api.Overview | null} */
  #overview = null;

  build() {
    const charts = this.#charts.map((chart) => h('div', { class: 'card' }, h('h3'), chart));
    this.append(
      this.notice,
      this.#trouble,
      this.#alarms,
      this.#glance,
      h(
        'section',
        {},
        h('div', { class: 'row' }, this.#heading, h('label', { class: 'push' }, 'Range ', this.#range)),
        h('div', { class: 'charts', 'data-testid': 'charts' }, ...charts),
      ),
      h('section', {}, h('h2', {}, 'Tools'), this.#table),
      this.#tasks,
    );
  }

  async load() {
    await this.#refresh();
    this.every(REFRESH_INTERVAL_MS, () => this.#refresh());
  }

  #change() {
    this.#series = new Series(this.#range.value === 'days' ? 'days' : 'hour');
    void this.attempt(() => this.#refresh());
  }

  async #refresh() {
    const series = this.#series;
    const [overview, columns] = await Promise.all([
      get('overview'),
      get('series', { range: series.range, after: series.after }),
      this.#alarms.refresh(),
      this.#tasks.refresh(),
    ]);
    series.add(columns);
    this.#overview = overview;
    this.#draw();
  }

  #draw() {
    if (!this.#overview) return;
    const { sessions, registry, models, audit, tools } = this.#overview;
    const entries = [
      [
        'Open sessions',
        `${formatCount(sessions.active)}`,
        `${formatCount(sessions.text)} text, ${formatCount(sessions.voice)} voice, ${formatCount(sessions.total)} since the start`,
      ],
      [
        'Registry',
        registry.version,
        `${formatCount(registry.tools)} tools, commit ${registry.commit ? shortId(registry.commit) : 'unknown'}`,
      ],
      ['Text model', models.text, models.fallback ? `${models.fallback} when it fails` : ''],
      ['Voice model', models.voice ?? 'off', firstAudio(models.firstAudio)],
      ['Audit', audit.isKept ? 'kept' : 'not kept', audit.lostLines > 0 ? `${formatCount(audit.lostLines)} lines lost` : ''],
    ];
    fill(this.#trouble, modelTroubleCard(models.trouble));
    fill(
      this.#glance,
      ...entries.map(([name, value, more]) =>
        h('div', { class: 'card' }, h('dt', {}, name), h('dd', {}, value, more && h('small', { class: 'quiet' }, more))),
      ),
    );
    this.#drawTable([...tools].sort((one, other) => other.lately.calls - one.lately.calls || one.id.localeCompare(other.id)));
    this.#drawCharts();
  }

  /** @param {Api.ToolOverview[]} tools */
  #drawTable(tools) {
    if (tools.length === 0) {
      return fill(
        this.#table,
        h('p', { class: 'empty' }, 'No tool is loaded. ', h('code', {}, 'quarterdeck new NAME'), ' creates one.'),
      );
    }
    const names = ['Tool', 'Health', 'Calls', 'Errors', 'Refused', 'p50', 'p95', 'Tokens, p95', 'By voice', 'Calls over time'];
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
    // The table was rebuilt; restore the focus.
    if (focused) this.#table.querySelector(`button[data-tool="${CSS.escape(focused)}"]`)?.dispatchEvent(new Event('refocus'));
  }

  /** @param {Api.ToolOverview} tool */
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
      number(formatCount(figures.calls)),
      number(formatShare(figures.errors, figures.calls)),
      number(formatCount(figures.refused)),
      number(none ? '–' : formatMs(figures.p50)),
      number(none ? '–' : formatMs(figures.p95)),
      number(none ? '–' : formatCount(figures.tokensP95)),
      h('td', { class: 'quiet', 'data-testid': 'tool-schedules' }, schedules(figures)),
      h('td', {}, lately.calls > 0 && sparkline(this.#series.of(tool.id, 'calls').map(Number))),
    );
  }

  /** @param {string} tool */
  #choose(tool) {
    this.#chosen = this.#chosen === tool ? '' : tool;
    this.#draw();
  }

  #drawCharts() {
    const series = this.#series;
    const chosen = this.#chosen;
    this.#heading.textContent = chosen || 'All tools';
    const row = (/** @type {string} */ name) => (chosen ? series.of(chosen, name) : series.all(name));
    const [calls, times, tokens] = this.#charts;
    const of = chosen ? ` of ${chosen}` : '';
    title(calls, `Calls every ${series.range === 'hour' ? 'ten seconds' : 'five minutes'}`);
    calls.show({
      title: `Calls${of}`,
      at: series.at,
      format: formatCount,
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
        at: series.at,
        format: formatMs,
        lines: [
          { name: 'p95', values: row('p95'), fills: true },
          { name: 'p50', values: row('p50'), tone: 'quiet' },
        ],
      });
      title(tokens, 'Tokens per answer');
      tokens.show({
        title: `Tokens per answer${of}`,
        at: series.at,
        format: formatCount,
        lines: [
          { name: 'p95', values: row('tokensP95'), fills: true },
          { name: 'average', values: row('tokens'), tone: 'quiet' },
        ],
      });
      return;
    }
    // Percentiles of different tools do not add up, so the maximum is shown.
    title(times, 'Latency of the slowest tool');
    times.show({
      title: 'Latency of the slowest tool',
      at: series.at,
      format: formatMs,
      lines: [
        { name: 'p95', values: series.max('p95'), fills: true },
        { name: 'p50', values: series.max('p50'), tone: 'quiet' },
      ],
    });
    title(tokens, 'Open sessions');
    tokens.show({
      title: 'Open sessions',
      at: series.at,
      format: formatCount,
      lines: [
        { name: 'text', values: series.text, fills: true },
        { name: 'voice', values: series.voice, tone: 'warn' },
      ],
    });
  }
}

/** How the latency scheduler has calls of a tool waited for. @param {Record<string, number>} figures */
function schedules(figures) {
  const counts = [
    [figures.scheduledInline, 'waited for'],
    [figures.scheduledFiller, 'with a filler'],
    [figures.scheduledBackground, 'in the background'],
    [figures.scheduledRefuse, 'too slow'],
  ];
  const shown = counts.flatMap(([count, how]) => (count ? [`${formatCount(Number(count))} ${how}`] : []));
  return shown.join(', ') || '–';
}

/** @param {{ p50: number, p95: number } | null} latency */
function firstAudio(latency) {
  return latency ? `first audio after ${formatMs(latency.p50)}, p95 ${formatMs(latency.p95)}` : '';
}

/** @param {Chart} chart @param {string} text */
function title(chart, text) {
  if (chart.previousElementSibling) chart.previousElementSibling.textContent = text;
}

customElements.define('qd-deck-tools', ToolsView);
