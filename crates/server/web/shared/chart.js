// <qd-chart>: lines over time as a small SVG, usable by pointer, arrow keys and screen reader.

import { fill, h } from './dom.js';

/** Null is a gap. @typedef {(number | null)[]} Values */
/** @typedef {{ name: string, values: Values, tone?: 'accent' | 'quiet' | 'bad' | 'warn', fills?: boolean }} ChartLine */
/** @typedef {{ title: string, at: number[], lines: ChartLine[], format: (value: number) => string }} ChartData */

const HEIGHT = 140;
const EDGE = { top: 10, right: 10, bottom: 22, left: 52 };

export class Chart extends HTMLElement {
  #readout = h('p', { class: 'chart-readout' });
  #picture = h('div', { class: 'chart-picture', tabindex: 0, role: 'img' });
  /** @type {ChartData | null} */
  #data = null;
  /** The selected sample; null selects the last. @type {number | null} */
  #place = null;
  #resized = new ResizeObserver(() => this.#draw());

  connectedCallback() {
    if (!this.#picture.isConnected) {
      this.#picture.addEventListener('pointermove', (event) => this.#pointAt(this.#placeAt(event.offsetX)));
      this.#picture.addEventListener('pointerleave', () => this.#pointAt(null));
      this.#picture.addEventListener('blur', () => this.#pointAt(null));
      this.#picture.addEventListener('keydown', (event) => this.#step(event));
      this.append(this.#picture, this.#readout);
    }
    this.#resized.observe(this);
  }

  disconnectedCallback() {
    this.#resized.disconnect();
  }

  /** @param {ChartData} data */
  show(data) {
    this.#data = data;
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #step(event) {
    const last = (this.#data?.at.length ?? 0) - 1;
    const from = this.#place ?? last;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last };
    const place = places[event.key];
    if (place === undefined || last < 0) return;
    event.preventDefault();
    this.#pointAt(Math.min(Math.max(place, 0), last));
  }

  /** @param {number | null} place */
  #pointAt(place) {
    if (place === this.#place) return;
    this.#place = place;
    this.#draw();
  }

  /** @param {number} x */
  #placeAt(x) {
    const count = this.#data?.at.length ?? 0;
    if (count === 0) return null;
    const share = (x - EDGE.left) / Math.max(1, this.clientWidth - EDGE.left - EDGE.right);
    return Math.min(count - 1, Math.max(0, Math.round(share * (count - 1))));
  }

  #draw() {
    const data = this.#data;
    if (!data || !this.isConnected) return;
    const { title, lines, format } = data;
    const max = Math.max(0, ...lines.flatMap((line) => known(line.values)));
    const highest = lines.map(({ name, values }) => `${name} ${said(Math.max(...known(values)), format)}`).join(', ');
    this.#picture.setAttribute('aria-label', `${title}. Highest: ${highest}. Arrow keys go through the moments.`);
    fill(this.#picture, drawing(data, Math.max(220, this.clientWidth), rounded(max), this.#place));
    // A screen reader announces a selected sample, not every new one.
    this.#readout.setAttribute('aria-live', this.#place === null ? 'off' : 'polite');
    fill(this.#readout, ...this.#said(data));
  }

  /** The values of the selected sample, which are also the legend. @param {ChartData} data */
  #said({ at, lines, format }) {
    if (at.length === 0) return ['Nothing yet.'];
    const place = this.#place ?? at.length - 1;
    const keys = lines.map((line) =>
      h('span', { class: 'chart-key', 'data-tone': line.tone ?? 'accent' }, `${line.name} ${said(line.values[place], format)}`),
    );
    return [`${this.#place === null ? 'Now' : timeOf(at[place], at, true)} `, ...keys];
  }
}

/**
 * A line without axes for a table cell, hidden from screen readers.
 *
 * @param {number[]} values
 */
export function sparkline(values) {
  const [width, height] = [120, 26];
  const max = Math.max(1, ...values);
  const points = values.map((value, place) => `${at(place, values.length, width)},${height - 2 - (value / max) * (height - 4)}`);
  const line = svg('polyline', { points: points.join(' '), class: 'chart-line', 'data-tone': 'accent' });
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'sparkline', 'aria-hidden': 'true' }, line);
}

/**
 * @param {ChartData} data
 * @param {number} width
 * @param {number} max
 * @param {number | null} place
 */
function drawing({ at: times, lines, format }, width, max, place) {
  const inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const x = (/** @type {number} */ index) => EDGE.left + at(index, times.length, inner.width);
  const y = (/** @type {number} */ value) => EDGE.top + inner.height * (1 - value / max);
  // Counts are whole, so a half may read like one of the ends.
  const shares = new Set([format(0), format(max / 2), format(max)]).size === 3 ? [0, 0.5, 1] : [0, 1];
  const grid = shares.flatMap((share) => [
    svg('line', { x1: EDGE.left, x2: width - EDGE.right, y1: y(share * max), y2: y(share * max), class: 'chart-grid' }),
    words(format(share * max), { x: EDGE.left - 8, y: y(share * max) + 4, class: 'chart-text', 'text-anchor': 'end' }),
  ]);
  const ends =
    times.length > 1
      ? [
          words(timeOf(times[0], times), { x: EDGE.left, y: HEIGHT - 5, class: 'chart-text' }),
          words(timeOf(times[times.length - 1], times), {
            x: width - EDGE.right,
            y: HEIGHT - 5,
            class: 'chart-text',
            'text-anchor': 'end',
          }),
        ]
      : [];
  const drawn = lines.flatMap((line) => {
    const tone = line.tone ?? 'accent';
    return runs(line.values).flatMap(({ from, values }) => {
      const points = values.map((value, index) => `${x(from + index).toFixed(1)},${y(value).toFixed(1)}`);
      // A single sample is not a line.
      if (points.length === 1)
        return [svg('circle', { cx: x(from), cy: y(values[0]), r: 2.5, class: 'chart-alone', 'data-tone': tone })];
      const ground = `${x(from)},${y(0)} ${points.join(' ')} ${x(from + points.length - 1)},${y(0)}`;
      const area = line.fills ? [svg('polygon', { points: ground, class: 'chart-area', 'data-tone': tone })] : [];
      return [...area, svg('polyline', { points: points.join(' '), class: 'chart-line', 'data-tone': tone })];
    });
  });
  const pointer =
    place === null || place >= times.length
      ? []
      : [
          svg('line', { x1: x(place), x2: x(place), y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: 'chart-pointer' }),
          ...lines.flatMap(({ values, tone }) => {
            const value = values[place] ?? null;
            if (value === null) return [];
            return [svg('circle', { cx: x(place), cy: y(value), r: 3.5, class: 'chart-dot', 'data-tone': tone ?? 'accent' })];
          }),
        ];
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, 'aria-hidden': 'true' },
    ...grid,
    ...ends,
    ...drawn,
    ...pointer,
  );
}

/** @param {Values} values */
function known(values) {
  return values.filter((value) => value !== null);
}

/**
 * A formatted value, or a word for a gap.
 *
 * @param {number | null | undefined} value
 * @param {(value: number) => string} format
 */
function said(value, format) {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : format(value);
}

/** The segments between gaps, with their start index. @param {Values} values */
function runs(values) {
  /** @type {{ from: number, values: number[] }[]} */
  const found = [];
  for (const [place, value] of values.entries()) {
    if (value === null) continue;
    const last = found.at(-1);
    if (last && last.from + last.values.length === place) last.values.push(value);
    else found.push({ from: place, values: [value] });
  }
  return found;
}

/** @param {number} place @param {number} count @param {number} width */
function at(place, count, width) {
  return count > 1 ? (place / (count - 1)) * width : width / 2;
}

/** The next round number. @param {number} max */
function rounded(max) {
  if (max <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(max));
  const step = [1, 2, 4, 5, 10].find((step) => step * size >= max) ?? 10;
  return Math.max(1, step * size);
}

/**
 * A time of day, with the date if the chart spans several days.
 *
 * @param {number} time
 * @param {number[]} times
 * @param {boolean} [isExact] with seconds, where they tell samples apart
 */
function timeOf(time, times, isExact = false) {
  const isLong = times[times.length - 1] - times[0] > 20 * 3_600_000;
  const day = isLong ? /** @type {const} */ ({ weekday: 'short' }) : {};
  const seconds = isLong || !isExact ? {} : /** @type {const} */ ({ second: '2-digit' });
  return new Date(time).toLocaleTimeString(undefined, { ...day, hour: '2-digit', minute: '2-digit', ...seconds });
}

/**
 * @param {string} text
 * @param {Record<string, string | number>} props
 */
function words(text, props) {
  const element = svg('text', props);
  element.textContent = text;
  return element;
}

/**
 * @param {string} tag
 * @param {Record<string, string | number>} props
 * @param {...Node} children
 */
function svg(tag, props, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

customElements.define('qd-chart', Chart);
