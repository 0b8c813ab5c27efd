// A session as a conversation: the words of each turn, with the lines of the audit log that belong to it.

import { h } from '../shared/dom.js';
import { lineView } from './audit-line.js';
import { formatTime } from './format.js';
import { turns as linesByTurn } from './timeline.js';

/** @type {Record<string, string>} */
const outcomes = { no_evidence: 'no evidence found', refused: 'refused', error: 'failed' };

/**
 * @param {Api.KeptConversation} conversation
 * @param {import('./audit-line.js').Line[]} lines oldest first
 * @param {number} began in milliseconds since 1970
 */
export function conversationView({ turns }, lines, began) {
  const ofTurn = new Map();
  for (const { turn, lines: some } of linesByTurn(lines)) ofTurn.set(turn, [...(ofTurn.get(turn) ?? []), ...some]);
  const known = new Set(turns.map(({ turn }) => turn));
  const others = [...ofTurn].filter(([turn]) => !known.has(turn)).flatMap(([, some]) => some);
  return h(
    'div',
    { 'data-testid': 'conversation' },
    h('ol', { class: 'turns' }, ...turns.map((turn) => h('li', {}, turnView(turn, ofTurn.get(turn.turn) ?? [], began)))),
    others.length > 0 && h('h3', {}, 'Not part of a turn'),
    others.length > 0 && auditLines(others, began),
  );
}

/** @param {Api.TranscriptTurn} turn @param {import('./audit-line.js').Line[]} lines @param {number} began */
function turnView(turn, lines, began) {
  const said = turn.parts.filter(({ type }) => type === 'text').map(({ text }) => text ?? '').join('\n\n');
  const outcome = outcomes[turn.outcome];
  return h(
    'article',
    { class: 'spoken', 'data-testid': 'conversation-turn' },
    h('h3', {}, `Turn ${turn.turn}`, h('span', { class: 'quiet' }, ` ${formatTime(turn.atMs)}`)),
    turn.user && h('p', { class: 'said', 'data-by': 'user' }, h('b', {}, 'User'), ' ', turn.user),
    lines.length > 0 && auditLines(lines, began),
    said && h('p', { class: 'said', 'data-by': 'agent' }, h('b', {}, 'Agent'), ' ', ...heardText(said, turn.heard)),
    turn.heard && h('p', { class: 'quiet', 'data-testid': 'heard' }, heardNote(turn.heard)),
    outcome && h('p', {}, h('span', { class: 'effect', 'data-effect': 'changes' }, outcome)),
    turn.feedback && h('p', { 'data-testid': 'turn-feedback' }, feedbackNote(turn.feedback)),
  );
}

/** @param {import('./audit-line.js').Line[]} lines @param {number} began */
function auditLines(lines, began) {
  return h('ol', { class: 'lines' }, ...lines.map((line) => h('li', {}, lineView(line, { since: began, isLinked: false }))));
}

/** The words that were heard, and those that were not. @param {string} text @param {Api.HeardWords | null | undefined} heard */
function heardText(text, heard) {
  if (!heard || heard.ofWords === 0 || heard.words >= heard.ofWords) return [text];
  const pieces = text.split(/(\s+)/);
  let words = 0;
  let end = pieces.length;
  for (const [index, piece] of pieces.entries()) {
    if (piece.trim() === '') continue;
    if (words === heard.words) {
      end = index;
      break;
    }
    words += 1;
  }
  return [pieces.slice(0, end).join(''), h('s', { class: 'quiet', title: 'not heard' }, pieces.slice(end).join(''))];
}

/** @param {Api.HeardWords} heard */
function heardNote({ words, ofWords, heardMs, ofMs, isInterrupted }) {
  const part = ofWords > 0 ? `${words} of ${ofWords} words` : `${heardMs} of ${ofMs} ms`;
  return `Heard ${part}${isInterrupted ? ', then interrupted' : ''}.`;
}

/** @param {Api.TurnFeedback} feedback */
function feedbackNote({ rating, comment }) {
  return `${rating === 'up' ? 'Thumbs up' : 'Thumbs down'}${comment ? `: ${comment}` : ''}`;
}
