// What changed in a tool, line by line. Colour is never the only sign: lines keep their + and −, and screen readers hear
// "added" and "removed". The text is a foreign server's: it is inserted as text, with every hidden character visible.

import { h } from '../shared/dom.js';
import { visible } from '../shared/visible.js';

/** More lines than these are not read in a page. */
const MAX_LINES = 2_000;

/** @typedef {'added' | 'removed' | 'same' | 'part'} Change */

/** @type {Record<string, Change>} */
const signs = { '+': 'added', '-': 'removed', ' ': 'same' };
/** @type {Record<Change, string>} */
const marks = { added: '+', removed: '−', same: ' ', part: '' };
/** @type {Record<Change, 'ins' | 'del' | 'span' | 'strong'>} */
const tags = { added: 'ins', removed: 'del', same: 'span', part: 'strong' };

/**
 * The lines of a difference with what happened to each.
 *
 * @param {string} text lines that begin with `+`, `-` or a space, and a space; others name the part that changed
 * @returns {{ change: Change, text: string }[]}
 */
function differenceLines(text) {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      const change = signs[line[0]] ?? 'part';
      return { change, text: change === 'part' ? line : line.slice(line[1] === ' ' ? 2 : 1) };
    });
}

/**
 * @param {string} text
 * @param {string} label what it is the difference of, for screen readers
 */
export function differenceView(text, label) {
  const lines = differenceLines(text);
  const shown = lines.slice(0, MAX_LINES).map(({ change, text }) =>
    h(
      'li',
      { class: 'diff-line', 'data-change': change },
      h('span', { class: 'diff-sign', 'aria-hidden': 'true' }, marks[change]),
      (change === 'added' || change === 'removed') && h('span', { class: 'hidden' }, `${change}: `),
      h(tags[change], { class: 'diff-text' }, visible(text)),
    ),
  );
  return h(
    'div',
    { class: 'diff', tabindex: 0, role: 'region', 'aria-label': label, 'data-testid': 'difference' },
    h('ol', {}, ...shown),
    lines.length > MAX_LINES && h('p', { class: 'quiet' }, `${lines.length - MAX_LINES} more lines.`),
  );
}
