// A line of the audit trail, for people.

import { h } from '../shared/dom.js';
import { duration } from '../shared/time.js';
import { json } from '../shared/values.js';
import { short, when } from './words.js';

/** @typedef {Record<string, any>} Line */

/** @type {Record<string, string>} */
const steps = {
  requested: 'a person is asked',
  approved: 'approved',
  denied: 'denied',
  expired: 'not answered in time',
  invalid: 'answered with a token that is not valid',
  used: 'answered a second time',
  not_run: 'approved, and not begun',
};
/** @type {Record<string, string>} */
const actions = {
  lift_block: 'lifted a block',
  end_session: 'ended a session',
  erase_client: 'erased a client',
  playground: 'tried a tool',
};

/**
 * How it went, in one word for colours.
 *
 * @param {Line} line
 * @returns {'good' | 'bad' | 'warn' | 'quiet'}
 */
export function tone(line) {
  if (line.event === 'tool_execution') return line.ok ? 'good' : line.how === 'refused' ? 'warn' : 'bad';
  if (line.event === 'confirmation') return line.step === 'approved' ? 'good' : 'warn';
  if (line.event === 'state_transition') return line.applied ? 'quiet' : 'warn';
  return line.event === 'audit_gap' ? 'bad' : 'quiet';
}

/** What happened, in a few words. @param {Line} line */
export function gist(line) {
  switch (line.event) {
    case 'tool_execution': {
      const outcome = line.ok ? (line.how ?? 'done') : `${line.how ?? 'failed'}: ${line.errorType ?? 'unknown'}`;
      return `${line.toolId} ${outcome}`;
    }
    case 'confirmation':
      return `${line.toolId ?? 'a call'}: ${steps[line.step] ?? line.step}`;
    case 'state_transition': {
      const asked =
        typeof line.asked === 'string' ? line.asked : (line.asked?.type ?? line.asked?.step ?? JSON.stringify(line.asked));
      return line.applied
        ? `state: ${asked.toLowerCase().replaceAll('_', ' ')}`
        : `state: ${asked} refused, ${line.reason ?? 'no reason given'}`;
    }
    case 'session_start':
      return `session begins in ${line.mode ?? 'some'} mode`;
    case 'session_resumed':
      return 'session goes on';
    case 'session_end':
      return `session ends: ${String(line.reason ?? '').replaceAll('_', ' ')}`;
    case 'operator':
      return `an operator ${actions[line.action] ?? line.action}`;
    default:
      return String(line.event).replaceAll('_', ' ');
  }
}

/**
 * One line, folded: when, what, how long, in which session; unfolded everything that the trail has.
 *
 * @param {Line} line
 * @param {{ since?: number, isLinked?: boolean }} [options] `since` shows times from there on
 */
export function lineView(line, { since, isLinked = true } = {}) {
  const took = line.event === 'tool_execution' && line.duration !== undefined ? duration(line.duration) : '';
  const time = since === undefined ? when(line.time) : `+${duration(Math.max(0, Date.parse(line.time) - since))}`;
  const body = h('div', { class: 'line-body' });
  const session =
    isLinked &&
    line.sessionId &&
    h('a', { class: 'line-session', href: `#sessions/${line.sessionId}`, title: line.sessionId }, short(line.sessionId));
  const details = h(
    'details',
    { class: 'line', 'data-tone': tone(line), 'data-event': line.event, 'data-testid': 'line' },
    h(
      'summary',
      {},
      h('span', { class: 'line-mark' }),
      h('time', { datetime: line.time }, time),
      h('span', { class: 'line-gist' }, gist(line)),
      h('span', { class: 'line-took' }, took),
    ),
    body,
  );
  // What nobody looks at is not drawn.
  details.addEventListener('toggle', () => {
    if (details.open && !body.firstChild) body.append(json(line));
  });
  return session ? h('div', { class: 'line-row' }, details, session) : details;
}
