// <qd-confirm>: a call that waits for a person's word. It shows exactly what would be done, and until when one can say.

import { h, setText } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { clock, everySecond, inLocalTime, serverNow } from '../shared/time.js';
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
  #title = h('span', { 'data-testid': 'confirm-title' }, 'May I do this?');
  #wait = h('p', { class: 'confirm-wait', hidden: true }, 'You can say so when the answer is complete.');
  #buttons = h('div', { class: 'confirm-buttons' }, this.#approve, this.#deny, this.#left, this.#wait);
  #isAnswered = false;
  /** How often the question was put again. */
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

  /** Whether nobody would hear the answer, because the agent is writing. @param {boolean} isWaiting */
  wait(isWaiting) {
    this.#approve.disabled = isWaiting;
    this.#deny.disabled = isWaiting;
    this.#wait.hidden = !isWaiting;
  }

  /** @param {ToolPart} tool */
  #draw(tool) {
    const question = tool.question;
    this.#tool = tool;
    const id = `confirm-${tool.id}`;
    const args = fields(question?.args ?? tool.input);
    // It can be longer than it is high, and is read by keyboard too.
    args.tabIndex = 0;
    const section = h(
      'section',
      { class: 'confirm', 'data-testid': 'confirm-card', 'aria-labelledby': id, 'data-state': 'asked' },
      h('h3', { id }, icon('shield'), this.#title),
      h('p', { class: 'confirm-preview' }, h('bdi', {}, visible(inLocalTime(question?.preview ?? tool.name)))),
      h(
        'details',
        { open: true },
        h('summary', {}, 'Exactly this, and nothing else'),
        h('p', { class: 'quiet' }, h('code', {}, visible(tool.name))),
        args,
      ),
      this.#buttons,
    );
    this.append(section);
    this.#approve.addEventListener('click', () => this.#answer(true));
    this.#deny.addEventListener('click', () => this.#answer(false));
    if (this.isConnected) this.#count(tool);
  }

  /** @param {ToolPart} tool */
  #count(tool) {
    this.#stop();
    this.#stop = everySecond(() => {
      if (this.#isAnswered) return false;
      const left = (tool.question?.expires ?? 0) - serverNow();
      setText(this.#left, `${clock(left / 1_000)} left`);
      if (left <= 0) this.#tell('expire', { tool });
      return left > 0;
    });
  }

  /** The answer did not arrive. @param {ToolPart} tool */
  #reopen(tool) {
    this.#asked = tool.asked ?? 0;
    this.#isAnswered = false;
    this.#buttons.hidden = false;
    setText(this.#title, 'May I do this?');
    const section = this.querySelector('section');
    if (section) section.dataset.state = 'asked';
    this.#count(tool);
  }

  /** Acts once, however often it is clicked. @param {boolean} isApproved */
  #answer(isApproved) {
    if (this.#isAnswered) return;
    this.#close(isApproved ? 'Approved. Doing it…' : 'Denied.', isApproved ? 'approved' : 'denied');
    this.#tell('decide', { tool: this.#tool, isApproved });
  }

  /** @param {string} words @param {string} [state] */
  #close(words, state) {
    this.#isAnswered = true;
    this.#stop();
    const had = this.contains(document.activeElement);
    this.#buttons.hidden = true;
    setText(this.#title, words);
    const section = this.querySelector('section');
    if (section) section.dataset.state = state ?? this.#tool?.state ?? 'done';
    for (const details of this.querySelectorAll('details')) details.open = false;
    // Whoever has pressed a button that is gone goes on where the next thing is written.
    if (had) this.#tell('leave');
  }

  /** @param {string} name @param {object} [detail] */
  #tell(name, detail) {
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
