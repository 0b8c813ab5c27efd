// JSON for people: arguments as a table, anything else as it is.

import { h } from './dom.js';
import { localTime } from './time.js';
import { visible } from './visible.js';

/** The longest piece of JSON that is shown. */
const LONGEST = 20_000;
/** How many characters of JSON stand on one line. */
const MAX_LINE_CHARS = 100;

/**
 * Arguments, name by name, exactly as they are.
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
 * JSON as it is.
 *
 * @param {unknown} value
 * @returns {HTMLElement}
 */
export function json(value) {
  const text = visible(typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing'));
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} characters more` : text;
  return h('pre', { tabindex: 0 }, h('code', {}, cut));
}

/**
 * @param {unknown} value
 * @returns {Node[]}
 */
function shown(value) {
  const text = visible(typeof value === 'string' ? value : compact(value));
  const local = localTime(value);
  // Isolated, so that a value which is read from right to left does not move what stands beside it.
  const exact = h('bdi', {}, h('code', {}, text === '' ? '""' : text));
  return local ? [exact, h('span', { class: 'quiet' }, ` ${local}, your time`)] : [exact];
}

/** On one line where that can be read at a glance. @param {unknown} value */
function compact(value) {
  const line = JSON.stringify(value) ?? '';
  return line.length > MAX_LINE_CHARS ? JSON.stringify(value, null, 2) : line;
}
