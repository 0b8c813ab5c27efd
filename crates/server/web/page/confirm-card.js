// <qd-confirm>: a call that needs the user's approval, with its exact arguments and the time left.

import { focusedBeside, h, setText } from '../shared/dom.js';
import { withTimes } from '../shared/human-time.js';
import { icon } from '../shared/icons.js';
import { clock, everySecond, serverNow } from '../shared/time.js';
import { fields } from '../shared/values.js';
import { visible } from '../shared/visible.js';

/** @typedef {import('./model.js').ToolPart} ToolPart */

export class ConfirmCard extends HTMLElement {
  #approve = h(
    'button',
    { type: 'button', class: 'primary', 'data-testid': 'confirm-approve' },
    icon('check'),
    'Approve',
  );
  #deny = h('button', { type: 'button', 'data-testid': 'confirm-deny' }, 'Deny');
  #left = h('span', { class: 'countdown', 'data-testid': 'confirm-countdown' });
  #title = h('span', { 'data-testid': 'confirm-title' }, 'Approve this call?');
  #buttons = h('div', { class: 'confirm-buttons' }, this.#approve, this.#deny, this.#left);
  /** @type {HTMLElement | null} */
  #code = null;
  #isDecided = false;
  /** How often the question was repeated. */
  #asked = 0;
  /** @type {ToolPart | null} */
  #tool = null;
  #stop = () => {};

  disconnectedCallback() {
    this.#stop();
  }

  connectedCallback() {
    if (this.#tool) this.#count(this.#tool);
  }

  /** @param {ToolPart} tool */
  update(tool) {
    if (!this.#tool) this.#draw(tool);
    this.#tool = tool;
    if (tool.state !== 'asked') this.#close(outcomes[tool.state] ?? '');
    else if ((tool.asked ?? 0) > this.#asked) this.#reopen(tool);
  }

  /** @param {ToolPart} tool */
  #draw(tool) {
    const question = tool.question;
    this.#tool = tool;
    const id = `confirm-${tool.id}`;
    const section = h(
      'section',
      { class: 'confirm', 'data-testid': 'confirm-card', 'aria-labelledby': id, 'data-state': 'asked' },
      h('h3', { id }, icon('shield'), this.#title),
      h('p', { class: 'confirm-preview' }, h('bdi', {}, ...withTimes(visible(question?.preview ?? tool.name)))),
      question?.reason &&
        h('p', { class: 'confirm-reason', 'data-testid': 'confirm-reason' }, h('bdi', {}, visible(question.reason))),
      h(
        'details',
        { open: true },
        h('summary', {}, 'Exact arguments'),
        h('p', { class: 'quiet' }, h('code', {}, visible(tool.name))),
        fields(question?.args ?? tool.input),
      ),
      this.#buttons,
      question?.code && this.#spokenCode(question.code),
    );
    this.append(section);
    this.#approve.addEventListener('click', () => this.#decide(true));
    this.#deny.addEventListener('click', () => this.#decide(false));
    if (this.isConnected) this.#count(tool);
  }

  /** Digits, because the user says them in the language of the call. @param {string} code */
  #spokenCode(code) {
    const digits = h('strong', { 'data-testid': 'confirm-code' }, [...code].join(' '));
    this.#code = h('p', { class: 'confirm-code' }, 'Or say: ', digits);
    return this.#code;
  }

  /** @param {ToolPart} tool */
  #count(tool) {
    this.#stop();
    this.#stop = everySecond(() => {
      if (this.#isDecided) return false;
      const left = (tool.question?.expires ?? 0) - serverNow();
      setText(this.#left, `${clock(left / 1_000)} left`);
      if (left <= 0) this.#emit('expire', { tool });
      return left > 0;
    });
  }

  /** The decision was not received. @param {ToolPart} tool */
  #reopen(tool) {
    this.#asked = tool.asked ?? 0;
    this.#isDecided = false;
    this.#buttons.hidden = false;
    if (this.#code) this.#code.hidden = false;
    setText(this.#title, 'Approve this call?');
    const section = this.querySelector('section');
    if (section) section.dataset.state = 'asked';
    this.#count(tool);
  }

  /** Acts once, however often a button is clicked. @param {boolean} isApproved */
  #decide(isApproved) {
    if (this.#isDecided) return;
    this.#close(isApproved ? 'Approved.' : 'Denied.', isApproved ? 'approved' : 'denied');
    this.#emit('decide', { tool: this.#tool, isApproved });
  }

  /** @param {string} title @param {string} [state] */
  #close(title, state) {
    this.#isDecided = true;
    this.#stop();
    const had = this.contains(focusedBeside(this));
    this.#buttons.hidden = true;
    if (this.#code) this.#code.hidden = true;
    setText(this.#title, title);
    const section = this.querySelector('section');
    if (section) section.dataset.state = state ?? this.#tool?.state ?? 'done';
    for (const details of this.querySelectorAll('details')) details.open = false;
    // The focused button is gone; the focus moves to the message box.
    if (had) this.#emit('leave');
  }

  /** @param {string} name @param {object} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

/** @type {Record<string, string>} */
const outcomes = {
  done: 'Approved and done.',
  denied: 'Denied. Nothing was done.',
  failed: 'Nothing was done.',
  expired: 'Expired. Nothing was done; ask again if you still want it.',
  unknown: 'Approved; the call ended before the outcome arrived.',
};

customElements.define('qd-confirm', ConfirmCard);
