// <qd-deck-playground>: runs one call through the real gates and shows each verdict.

import { fill, h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { fields, json } from '../shared/values.js';
import { visible } from '../shared/visible.js';
import { get, send } from './api.js';
import { exampleArgs } from './example-args.js';
import { View } from './view.js';

/** @type {Record<string, string>} */
const verdicts = {
  passed: 'passed',
  changed: 'changed the arguments',
  reserved: 'reserved a slot',
  replayed: 'replayed the recorded answer',
  refused: 'refused',
  asked: 'asks for approval',
  approved: 'approved',
  not_reached: 'not reached',
};

class PlaygroundView extends View {
  #tool = h('select', { id: 'play-tool', 'data-testid': 'play-tool', onchange: () => this.#chosen() });
  #summary = h('p', { class: 'quiet' });
  #args = h('textarea', {
    id: 'play-args',
    rows: 10,
    spellcheck: 'false',
    autocomplete: 'off',
    'data-testid': 'play-args',
    'aria-describedby': 'play-fault',
  });
  #fault = h('p', { id: 'play-fault', class: 'bad', role: 'alert' });
  #mode = h(
    'select',
    { id: 'play-mode', 'data-testid': 'play-mode' },
    h('option', { value: 'text' }, 'text'),
    h('option', { value: 'voice' }, 'voice'),
  );
  #approve = h('input', { type: 'checkbox', id: 'play-approve', 'data-testid': 'play-approve' });
  #run = h('button', { class: 'primary', 'data-testid': 'play-run' }, 'Run');
  #result = h('section', { class: 'card', 'aria-label': 'Outcome', 'data-testid': 'play-result', hidden: true, tabindex: -1 });
  /** @type {Api.RegistryTool[]} */
  #tools = [];

  build() {
    const form = h(
      'form',
      {
        class: 'play',
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          void this.attempt(() => this.#play());
        },
      },
      h('div', { class: 'row' }, h('label', {}, 'Tool ', this.#tool), h('label', {}, 'Mode ', this.#mode)),
      this.#summary,
      h('label', { for: 'play-args' }, 'Arguments, as JSON'),
      this.#args,
      this.#fault,
      h('div', { class: 'row' }, this.#run, h('label', {}, this.#approve, ' Approve the call if it needs approval')),
    );
    this.append(
      h('h2', {}, 'Playground'),
      h(
        'p',
        { class: 'quiet' },
        'The call is real and takes effect. It runs in its own session, owned by the operator, and is audited.',
      ),
      this.notice,
      form,
      this.#result,
    );
  }

  /** @param {string} wanted */
  async load(wanted) {
    if (this.#tools.length === 0) {
      this.#tools = (await get('registry')).tools;
      if (this.#tools.length === 0) return this.showNotice('No tool is loaded. Create one with `quarterdeck new NAME`.');
      fill(this.#tool, ...this.#tools.map((tool) => h('option', { value: tool.id }, tool.id)));
      this.#chosen();
    }
    if (wanted && wanted !== this.#tool.value && this.#tools.some((tool) => tool.id === wanted)) {
      this.#tool.value = wanted;
      this.#chosen();
    }
  }

  #chosen() {
    const tool = this.#tools.find((tool) => tool.id === this.#tool.value);
    this.#summary.textContent = tool?.summary ?? '';
    this.#args.value = JSON.stringify(tool?.example ?? exampleArgs(tool?.parameters ?? {}), null, 2);
    this.#fault.textContent = '';
  }

  async #play() {
    this.#fault.textContent = '';
    let args;
    try {
      args = JSON.parse(this.#args.value || '{}');
      if (typeof args !== 'object' || args === null || Array.isArray(args)) throw new Error('Arguments must be a JSON object.');
    } catch (error) {
      this.#fault.textContent = error instanceof Error ? error.message : String(error);
      return this.#args.focus();
    }
    this.#run.disabled = true;
    try {
      this.#show(
        await send('POST', 'playground', {
          tool: this.#tool.value,
          args,
          mode: this.#mode.value,
          approve: this.#approve.checked,
        }),
      );
    } finally {
      this.#run.disabled = false;
    }
  }

  /** @param {Api.PlaygroundResponse} played */
  #show({ response, gates, question, reason, arguments: args, messages, sessionId, fault }) {
    const outcome = response.ok ? 'Done' : `Failed: ${response.error.type.toLowerCase().replaceAll('_', ' ')}`;
    const isAsked = !response.ok && response.error.type === 'CONFIRMATION_REQUIRED';
    fill(
      this.#result,
      h(
        'div',
        { class: 'row' },
        h('h3', { 'data-tone': response.ok ? 'good' : isAsked ? 'warn' : 'bad', 'data-testid': 'play-outcome' }, outcome),
        h('a', { class: 'push', href: `#sessions/${sessionId}` }, 'Session'),
      ),
      question &&
        h(
          'div',
          { class: 'question', 'data-testid': 'play-question' },
          h('p', {}, 'Approval needed: ', h('bdi', {}, visible(question)), isAsked && ' Tick the box and run again to approve.'),
          reason && h('p', { class: 'quiet' }, h('bdi', {}, visible(reason))),
          fields(args),
        ),
      ...(fault ? [h('h4', {}, 'Exception'), exception(fault)] : []),
      h('h4', {}, 'Gates'),
      gates ? list(gates) : h('p', { class: 'quiet' }, 'No gate ran.'),
      ...(messages.length > 0 ? [h('h4', {}, 'Messages to the client'), json(messages)] : []),
      h('h4', {}, 'Envelope'),
      json(response),
    );
    this.#result.hidden = false;
    this.#result.focus();
  }
}

/** What the handler threw, as a compiler shows it. @param {Api.HandlerFault} fault */
function exception({ message, frames, excerpt, hint }) {
  const lines = [message];
  if (excerpt) {
    const number = `${excerpt.line}`;
    const margin = ' '.repeat(number.length);
    // A tab before the caret is as wide as the one above it.
    const indent = [...excerpt.text].slice(0, excerpt.caret).map((letter) => (letter === '\t' ? '\t' : ' '));
    lines.push(`${margin} --> ${excerpt.file}:${excerpt.line}:${excerpt.column}`);
    lines.push(`${number} | ${excerpt.text}`, `${margin} | ${indent.join('')}^`);
  }
  for (const { function: name, file, line, column } of frames) {
    const place = `${file}:${line}:${column}`;
    lines.push(`    at ${name ? `${name} (${place})` : place}`);
  }
  return h(
    'div',
    { 'data-testid': 'play-exception' },
    h('pre', { class: 'fault', tabindex: 0, 'aria-label': 'Exception' }, h('code', {}, visible(lines.join('\n')))),
    hint && h('p', { 'data-testid': 'play-hint' }, h('strong', {}, 'Hint: '), h('bdi', {}, visible(hint))),
  );
}

/** @param {Api.Gate[]} gates */
function list(gates) {
  const items = gates.map(({ gate, verdict, note }) =>
    h(
      'li',
      { 'data-verdict': verdict, 'data-testid': 'gate' },
      icon(verdict === 'refused' ? 'cross' : verdict === 'asked' ? 'clock' : verdict === 'not_reached' ? 'down' : 'check'),
      h('span', { class: 'gate-name' }, gate.replaceAll('_', ' ')),
      h('span', { class: 'quiet' }, verdicts[verdict] ?? verdict),
      note !== undefined && h('code', {}, typeof note === 'string' ? note : JSON.stringify(note)),
    ),
  );
  return h('ol', { class: 'gates' }, ...items);
}

customElements.define('qd-deck-playground', PlaygroundView);
