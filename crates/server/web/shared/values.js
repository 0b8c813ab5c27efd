// Shows JSON: arguments as a table, anything else as text.

import { h } from './dom.js';
import { timeOf } from './human-time.js';
import { dateOf } from './time.js';
import { visible } from './visible.js';

const MAX_JSON_CHARS = 20_000;
const MAX_LINE_CHARS = 100;

/**
 * Arguments by name, exactly as they are.
 *
 * @param {unknown} value
 * @returns {HTMLElement}
 */
export function fields(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return json(value);
  const rows = Object.entries(value).flatMap(([name, field]) => [
    h('dt', {}, h('bdi', {}, visible(name))),
    h('dd', {}, ...shown(field)),
  ]);
  return rows.length > 0 ? h('dl', { class: 'fields' }, ...rows) : h('p', { class: 'quiet' }, 'none');
}

/**
 * @param {unknown} value
 * @returns {HTMLElement}
 */
export function json(value) {
  const text = visible(typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing'));
  const cut = text.length > MAX_JSON_CHARS ? `${text.slice(0, MAX_JSON_CHARS)}\n… ${text.length - MAX_JSON_CHARS} more characters` : text;
  return h('pre', { tabindex: 0 }, h('code', {}, cut));
}

/**
 * @param {unknown} value
 * @returns {Node[]}
 */
function shown(value) {
  const text = visible(typeof value === 'string' ? value : compact(value));
  const date = dateOf(value);
  // Isolated, so that right-to-left text does not move its neighbours.
  const exact = h('bdi', {}, h('code', {}, text === '' ? '""' : text));
  return date ? [exact, h('span', { class: 'quiet' }, ' ', timeOf(date), ', your time')] : [exact];
}

/** On one line if it is short. @param {unknown} value */
function compact(value) {
  const line = JSON.stringify(value) ?? '';
  return line.length > MAX_LINE_CHARS ? JSON.stringify(value, null, 2) : line;
}
