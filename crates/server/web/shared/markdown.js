// Renders light Markdown as nodes: paragraphs, headings, lists, quotes, tables, code. Never through HTML.

import { fill, h } from './dom.js';
import { inline } from './inline.js';

/** @typedef {import('./inline.js').Cite} Cite */
/** @typedef {'paragraph' | 'heading' | 'list' | 'numbers' | 'quote' | 'table' | 'code' | 'rule'} Kind */
/** @typedef {{ kind: Kind, lines: string[], first?: number, level?: number }} Block */

/**
 * Renders a text that may still grow. Unchanged blocks keep their nodes, with selection and focus.
 *
 * @param {Element} element
 * @param {string} text
 * @param {Cite} cite
 */
export function showMarkdown(element, text, cite) {
  const sources = new Array();
  for (const [place, block] of blocks(text).entries()) {
    const source = JSON.stringify(block);
    const old = element.children[place];
    sources.push(source);
    if (old && shown.get(old) === source) continue;
    const made = render(block, cite);
    shown.set(made, source);
    if (old) old.replaceWith(made);
    else element.append(made);
  }
  while (element.children.length > sources.length) element.lastElementChild?.remove();
}

/** The source of each block. @type {WeakMap<Element, string>} */
const shown = new WeakMap();

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function blocks(text) {
  /** @type {Block[]} */
  const found = [];
  /** @type {Block | null} */
  let open = null;
  let fence = '';
  const begin = (/** @type {Block} */ block) => {
    found.push(block);
    return block;
  };
  for (const line of text.split(/\r?\n/)) {
    if (fence && open) {
      if (line.trim() === fence) [fence, open] = ['', null];
      else open.lines.push(line);
      continue;
    }
    const fenced = /^\s*(```+|~~~+)/.exec(line);
    if (fenced) {
      fence = fenced[1];
      open = begin({ kind: 'code', lines: [] });
      continue;
    }
    open = more(open, line, begin);
  }
  return found;
}

/**
 * Adds a line to the open block or starts a new one.
 *
 * @param {Block | null} open
 * @param {string} line
 * @param {(block: Block) => Block} begin
 * @returns {Block | null}
 */
function more(open, line, begin) {
  if (!line.trim()) return open?.kind === 'list' || open?.kind === 'numbers' ? open : null;
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) {
    begin({ kind: 'heading', level: heading[1].length, lines: [heading[2]] });
    return null;
  }
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
    begin({ kind: 'rule', lines: [] });
    return null;
  }
  const item = /^\s*(?:[-*+•]|(\d{1,9})[.)])\s+(.*)$/.exec(line);
  if (item) {
    const kind = item[1] ? 'numbers' : 'list';
    const list = open?.kind === kind ? open : begin({ kind, lines: [], first: Number(item[1] ?? 1) });
    list.lines.push(item[2]);
    return list;
  }
  const quote = /^\s*>\s?(.*)$/.exec(line);
  if (quote) {
    const block = open?.kind === 'quote' ? open : begin({ kind: 'quote', lines: [] });
    block.lines.push(quote[1]);
    return block;
  }
  if (open?.kind === 'table' && line.includes('|')) {
    open.lines.push(line);
    return open;
  }
  const head = open?.kind === 'paragraph' ? open.lines.at(-1) : undefined;
  if (open && head?.includes('|') && underTable.test(line) && cells(head).length === cells(line).length) {
    open.lines.pop();
    // Lines above the header are a paragraph.
    if (open.lines.length > 0) return begin({ kind: 'table', lines: [head] });
    return Object.assign(open, { kind: 'table', lines: [head] });
  }
  const isList = open?.kind === 'list' || open?.kind === 'numbers';
  if (open && isList && /^\s{2,}/.test(line)) {
    open.lines.push(`${open.lines.pop() ?? ''} ${line.trim()}`);
    return open;
  }
  const block = open && !isList && open.kind === 'paragraph' ? open : begin({ kind: 'paragraph', lines: [] });
  block.lines.push(line);
  return block;
}

/**
 * @param {Block} block
 * @param {Cite} cite
 * @returns {HTMLElement}
 */
function render(block, cite) {
  const items = () => block.lines.map((line) => h('li', {}, ...inline(line, cite)));
  switch (block.kind) {
    case 'code':
      return h('pre', { tabindex: 0 }, h('code', {}, block.lines.join('\n')));
    case 'rule':
      return h('hr');
    case 'list':
      return h('ul', {}, ...items());
    case 'numbers':
      return h('ol', { start: block.first === 1 ? null : block.first }, ...items());
    case 'heading': {
      // The page's own headings rank above those of an answer.
      const heading = h((block.level ?? 1) <= 2 ? 'h3' : 'h4');
      fill(heading, ...inline(block.lines[0], cite));
      return heading;
    }
    case 'table':
      return table(block.lines, cite);
    case 'quote':
      return h('blockquote', {}, ...inline(block.lines.join('\n'), cite));
    default:
      return h('p', {}, ...inline(block.lines.join('\n'), cite));
  }
}

/** The separator under a table's header. */
const underTable = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\||(?<!\\)\|$/g, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** @param {string[]} lines @param {Cite} cite */
function table([head, ...rows], cite) {
  const columns = cells(head);
  const row = (/** @type {string[]} */ found, /** @type {'th' | 'td'} */ tag) =>
    h('tr', {}, ...columns.map((_, place) => h(tag, {}, ...inline(found[place] ?? '', cite))));
  const body = h('tbody', {}, ...rows.map((line) => row(cells(line), 'td')));
  // Scrollable by keyboard.
  return h('div', { class: 'table', tabindex: 0 }, h('table', {}, h('thead', {}, row(columns, 'th')), body));
}
