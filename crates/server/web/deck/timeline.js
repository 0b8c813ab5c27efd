// The timeline of a session: its turns with calls, confirmations and state changes.

import { h } from '../shared/dom.js';
import { lineView } from './audit-line.js';

/** @typedef {import('./audit-line.js').Line} Line */

/**
 * @param {Line[]} lines oldest first
 * @param {number} began in milliseconds since 1970
 */
export function timeline(lines, began) {
  return h(
    'ol',
    { class: 'turns', 'data-testid': 'timeline' },
    ...turns(lines).map(({ turn, lines }) =>
      h(
        'li',
        {},
        h('h3', {}, turn === 0 ? 'Before the first call' : `Turn ${turn}`),
        h('ol', { class: 'lines' }, ...lines.map((line) => h('li', {}, lineView(line, { since: began, isLinked: false })))),
      ),
    ),
  );
}

/**
 * Groups lines by turn. Calls and confirmations carry a turn number; other lines belong to the turn of their call, or
 * to the current turn.
 *
 * @param {Line[]} lines
 */
export function turns(lines) {
  const ofCall = new Map(lines.filter((line) => line.turnId !== undefined).map((line) => [line.callId, line.turnId]));
  /** @type {{ turn: number, lines: Line[] }[]} */
  const found = [];
  let turn = 0;
  for (const line of lines) {
    turn = line.turnId ?? ofCall.get(line.callId) ?? turn;
    const last = found.at(-1);
    if (last?.turn === turn) last.lines.push(line);
    else found.push({ turn, lines: [line] });
  }
  return found;
}
