// What happened in a session: its turns, and in each of them calls, questions and changes of state.

import { h } from '../shared/dom.js';
import { lineView } from './line.js';

/** @typedef {import('./line.js').Line} Line */

/**
 * @param {Line[]} lines the oldest first
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
 * Lines by turn. Calls and questions say in which turn they are; whatever else happened belongs to the call that it is
 * about, or to the turn that is under way.
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
