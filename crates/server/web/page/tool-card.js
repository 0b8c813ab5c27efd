// <qd-tool>: one tool call. Folded: name, state and duration; unfolded: arguments, gates and result.

import { fill, h, setText } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { pageSettings } from '../shared/page-settings.js';
import { duration } from '../shared/time.js';
import { fields, json } from '../shared/values.js';
import { visible } from '../shared/visible.js';
import { explainCall, verdict } from './explain.js';

/** @typedef {import('./model.js').ToolPart} ToolPart */

/** @type {Record<import('./model.js').ToolState, string>} */
const states = {
  running: 'running',
  background: 'running in the background',
  cancelled: 'cancelled',
  asked: 'needs approval',
  done: 'done',
  failed: 'refused',
  denied: 'denied',
  expired: 'expired',
  unknown: 'outcome unknown',
};

export class ToolCard extends HTMLElement {
  #name = h('code', { class: 'tool-name' });
  #gist = h('span', { class: 'tool-gist' });
  #state = h('span', { class: 'tool-state' });
  #body = h('div', { class: 'tool-body' });
  #details = h('details', { 'data-testid': 'tool-card' });
  #cancel = h('button', { type: 'button', class: 'task-cancel', 'data-testid': 'task-cancel' }, 'Cancel');
  /** @type {ToolPart | null} */
  #tool = null;
  #drawn = '';

  connectedCallback() {
    if (this.#details.isConnected) return;
    const mark = h('span', { class: 'tool-mark' });
    this.#details.append(h('summary', {}, mark, this.#name, this.#gist, this.#state), this.#body);
    // Drawn on first use: results can be long.
    this.#details.addEventListener('toggle', () => this.#draw());
    this.#cancel.addEventListener('click', () => {
      this.dispatchEvent(new CustomEvent('cancel-task', { bubbles: true, detail: this.#tool }));
    });
    this.append(this.#details);
  }

  /** @param {ToolPart} tool */
  update(tool) {
    this.#tool = tool;
    this.#details.dataset.state = tool.state;
    this.#details.dataset.tool = tool.name;
    if (tool.state === 'background') this.append(this.#cancel);
    else this.#cancel.remove();
    this.#cancel.disabled = tool.isCancelling === true;
    this.#cancel.setAttribute('aria-label', `Cancel ${tool.name}`);
    setText(this.#name, tool.name);
    setText(this.#gist, gist(tool));
    const took = tool.took === undefined ? '' : ` · ${duration(tool.took)}`;
    setText(this.#state, `${stateOf(tool)}${took}`);
    this.#draw();
  }

  #draw() {
    const tool = this.#tool;
    if (!tool || !this.#details.open) return;
    const drawn = `${tool.state}${tool.took}${tool.gates?.length}${JSON.stringify(tool.partial)}`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    // A call that waits for approval has its arguments whatever the operator has hidden.
    const hasArguments = pageSettings().show.json || tool.state === 'asked';
    const given = hasArguments ? [h('h3', {}, 'Arguments'), fields(tool.input)] : [];
    fill(this.#body, ...given, ...gates(tool), ...result(tool));
  }
}

/** @param {ToolPart} tool */
function stateOf(tool) {
  if (tool.isCancelling && tool.state === 'background') return 'cancelling';
  if (tool.state === 'running' || tool.state === 'background') return tool.progress ?? states[tool.state];
  if (tool.state === 'failed' && !explainCall(tool)) return 'failed';
  return states[tool.state];
}

/** The first text argument. @param {ToolPart} tool */
function gist(tool) {
  if (typeof tool.input !== 'object' || tool.input === null) return '';
  const words = Object.values(tool.input).find((value) => typeof value === 'string' && value !== '');
  return typeof words === 'string' ? visible(words) : '';
}

/** @param {ToolPart} tool @returns {Node[]} */
function gates(tool) {
  if (!tool.gates) return [];
  const steps = tool.gates.map((step) => {
    const word = step.verdict;
    const detail = step.note === undefined ? '' : JSON.stringify(step.note);
    return h(
      'li',
      { class: 'gate', 'data-verdict': word, title: detail },
      icon(word === 'refused' ? 'cross' : word === 'asked' ? 'clock' : word === 'not_reached' ? 'down' : 'check'),
      h('span', { class: 'gate-name' }, step.gate.replaceAll('_', ' ')),
      ' ',
      h('span', { class: 'quiet' }, verdict(step)),
    );
  });
  const list =
    steps.length > 0 ? h('ul', { class: 'gates' }, ...steps) : h('p', { class: 'quiet' }, 'All gates passed.');
  return [h('h3', {}, 'Gates'), list];
}

/** @param {ToolPart} tool @returns {Node[]} */
function result(tool) {
  const heading = h('h3', {}, 'Outcome');
  const why = explainCall(tool);
  switch (tool.state) {
    case 'done':
      if (!pageSettings().show.json) return [heading, h('p', {}, 'Done.')];
      return [heading, json(tool.output === undefined ? 'Done.' : (tool.output.data ?? tool.output))];
    case 'failed':
      return [heading, ...(why ? [h('p', {}, why)] : []), h('p', { class: 'bad' }, tool.error ?? 'Failed.')];
    case 'running':
    case 'background':
      return tool.partial === undefined ? [] : [h('h3', {}, 'So far'), json(tool.partial)];
    case 'denied':
    case 'expired':
    case 'unknown':
    case 'cancelled':
      return [heading, h('p', {}, why ?? tool.error)];
    default:
      return [];
  }
}

customElements.define('qd-tool', ToolCard);
