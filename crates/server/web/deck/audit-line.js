// One line of the audit log.

import { h } from '../shared/dom.js';
import { duration } from '../shared/time.js';
import { json } from '../shared/values.js';
import { formatMs, formatTime, shortId } from './format.js';

/** @typedef {Record<string, any>} Line */

/** @type {Record<string, string>} */
const steps = {
  requested: 'approval requested',
  approved: 'approved',
  denied: 'denied',
  expired: 'expired',
  invalid: 'invalid token',
  used: 'token used a second time',
  not_run: 'approved, not started',
};
/** @type {Record<string, string>} */
const actions = {
  lift_alarm: 'lifted an alarm',
  lift_block: 'lifted a block',
  log_level: 'changed the level of the log',
  log_level_reverted: 'level of the log went back',
  end_session: 'ended a session',
  erase_client: 'erased a client',
  open_conversation: 'opened a conversation',
  list_unanswered: 'read the unanswered questions',
  export_unanswered: 'exported unanswered questions',
  playground: 'tried a tool',
};

/**
 * The outcome as a colour.
 *
 * @param {Line} line
 * @returns {'good' | 'bad' | 'warn' | 'quiet'}
 */
export function tone(line) {
  if (line.source === 'handler') return 'quiet';
  if (line.event === 'tool_execution') return line.ok ? 'good' : line.how === 'refused' ? 'warn' : 'bad';
  if (line.event === 'confirmation') return line.step === 'approved' ? 'good' : 'warn';
  if (line.event === 'state_transition') return line.applied ? 'quiet' : 'warn';
  if (line.event === 'answer_heard') return line.isInterrupted ? 'warn' : 'quiet';
  if (line.event === 'alarm') return line.change === 'fired' ? 'bad' : 'quiet';
  if (line.event === 'audit_gap' || line.event === 'upstream_drifted') return 'bad';
  return line.event === 'upstream_lost' || line.event === 'upstream_refused' ? 'warn' : 'quiet';
}

/** A short description of the event. @param {Line} line */
export function describe(line) {
  // A handler chooses the names of its events, which may be those of ours.
  if (line.source === 'handler') return `${line.toolId}: ${String(line.event).replaceAll('_', ' ')}`;
  switch (line.event) {
    case 'tool_execution': {
      const outcome = line.ok ? (line.how ?? 'done') : `${line.how ?? 'failed'}: ${line.errorType ?? 'unknown'}`;
      return `${line.toolId} ${outcome}${scheduled(line)}`;
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
    case 'answer_heard':
      return heard(line);
    case 'session_start':
      return `session started in ${line.mode ?? 'unknown'} mode`;
    case 'session_resumed':
      return 'session resumed';
    case 'session_end':
      return `session ended: ${String(line.reason ?? '').replaceAll('_', ' ')}`;
    case 'upstream_connected':
      return `MCP server ${line.server} connected`;
    case 'upstream_lost':
      return `MCP server ${line.server} lost`;
    case 'upstream_restarted':
      return `MCP server ${line.server} connected again`;
    case 'upstream_drifted':
      return `${line.toolId}: MCP server ${line.server} changed what was imported`;
    case 'upstream_restored':
      return `${line.toolId}: as imported again`;
    case 'upstream_refused':
      return `MCP server ${line.server}: ${line.request} refused`;
    case 'alarm':
      return `alarm ${line.alarm} ${line.change}`;
    case 'operator':
      return `an operator ${actions[line.action] ?? line.action}`;
    default:
      return String(line.event).replaceAll('_', ' ');
  }
}

/** How the latency scheduler has a voice call waited for, unless it just was. @param {Line} line */
function scheduled(line) {
  const step = Array.isArray(line.gates) ? line.gates.find((/** @type {any} */ step) => step.gate === 'latency') : null;
  const { schedule, p50Ms } = step?.detail ?? {};
  if (schedule === undefined || schedule === 'inline') return '';
  return ` (${schedule === 'refuse' ? 'too slow' : schedule}, takes ${formatMs(p50Ms)})`;
}

/** How much of an answer the user has heard. @param {Line} line */
function heard({ heardMs, ofMs, words, ofWords, isInterrupted }) {
  const seconds = (/** @type {number} */ ms) => `${(ms / 1_000).toFixed(1)} s`;
  const inWords = ofWords === undefined ? '' : `, ${words} of ${ofWords} words`;
  return `heard ${seconds(heardMs)} of ${seconds(ofMs)}${inWords}${isInterrupted ? ', then interrupted' : ''}`;
}

/**
 * One line: time, event, duration and session when folded, the whole record when unfolded.
 *
 * @param {Line} line
 * @param {{ since?: number, isLinked?: boolean }} [options] `since` shows times relative to that moment
 */
export function lineView(line, { since, isLinked = true } = {}) {
  const took = line.event === 'tool_execution' && line.duration !== undefined ? duration(line.duration) : '';
  const time = since === undefined ? formatTime(line.time) : `+${duration(Math.max(0, Date.parse(line.time) - since))}`;
  const body = h('div', { class: 'line-body' });
  const session =
    isLinked &&
    line.sessionId &&
    h('a', { class: 'line-session', href: `#sessions/${line.sessionId}`, title: line.sessionId }, shortId(line.sessionId));
  const details = h(
    'details',
    { class: 'line', 'data-tone': tone(line), 'data-event': line.event, 'data-testid': 'line' },
    h(
      'summary',
      {},
      h('span', { class: 'line-mark' }),
      h('time', { datetime: line.time }, time),
      h('span', { class: 'line-gist' }, describe(line)),
      line.nodeName && h('span', { class: 'line-node quiet', 'data-testid': 'line-node' }, `on ${line.nodeName}`),
      h('span', { class: 'line-took' }, took),
    ),
    body,
  );
  // Drawn on first use: records can be long.
  details.addEventListener('toggle', () => {
    if (details.open && !body.firstChild) body.append(json(line));
  });
  return session ? h('div', { class: 'line-row' }, details, session) : details;
}
