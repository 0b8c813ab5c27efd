// Markdown within a line: code, emphasis, links and citations.

import { h } from './dom.js';

/**
 * Creates the link to a record, or `null` if the record is unknown.
 *
 * @typedef {(id: string, label: string | null) => Node | null} Cite
 */

const patterns = [
  { name: 'code', at: /(`+)(.+?)\1(?!`)/ },
  { name: 'link', at: /\[([^\]\n]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)/ },
  { name: 'cite', at: /\[([a-z][a-z0-9_-]*:[\w./-]+(?:\s*[,;]\s*[a-z][a-z0-9_-]*:[\w./-]+)*)\]/ },
  { name: 'strong', at: /\*\*(?=\S)(.+?)(?<=\S)\*\*/ },
  { name: 'emphasis', at: /(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?!\w)|(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)/ },
  { name: 'address', at: /\bhttps?:\/\/(?:[^\s<>()]|\([^\s<>()]*\))*(?:[^\s<>().,;:!?'"]|\([^\s<>()]*\))/ },
];

/**
 * @param {string} text
 * @param {Cite} cite
 * @returns {Node[]}
 */
export function inline(text, cite) {
  /** @type {Node[]} */
  const nodes = [];
  let rest = text;
  while (rest) {
    const found = first(rest);
    if (!found) break;
    const { name, match } = found;
    if (match.index > 0) nodes.push(document.createTextNode(rest.slice(0, match.index)));
    nodes.push(...made(name, match, cite));
    rest = rest.slice(match.index + match[0].length);
  }
  if (rest) nodes.push(document.createTextNode(rest));
  return nodes;
}

/**
 * The first match. Of two at the same place, the earlier pattern wins.
 *
 * @param {string} text
 */
function first(text) {
  /** @type {{ name: string, match: RegExpExecArray } | null} */
  let best = null;
  for (const { name, at } of patterns) {
    const match = at.exec(text);
    if (match && (!best || match.index < best.match.index)) best = { name, match };
  }
  return best;
}

/**
 * @param {string} name
 * @param {RegExpExecArray} match
 * @param {Cite} cite
 * @returns {Node[]}
 */
function made(name, match, cite) {
  switch (name) {
    case 'code':
      return [h('code', {}, match[2])];
    case 'strong':
      return [h('strong', {}, ...inline(match[1], cite))];
    case 'emphasis':
      return [h('em', {}, ...inline(match[1] ?? match[2], cite))];
    case 'cite':
      return match[1].split(/\s*[,;]\s*/).map((id) => cite(id, null) ?? h('code', {}, id));
    case 'link':
      return linked(match[1], match[2], cite);
    default:
      return linked(match[0], match[0], cite);
  }
}

/**
 * A link if its target is allowed, otherwise its label.
 *
 * @param {string} label
 * @param {string} target
 * @param {Cite} cite
 * @returns {Node[]}
 */
function linked(label, target, cite) {
  if (/^(https?:\/\/|mailto:)/i.test(target)) {
    return [h('a', { href: target, target: '_blank', rel: 'noopener noreferrer' }, label)];
  }
  return [cite(target, label) ?? document.createTextNode(label)];
}
