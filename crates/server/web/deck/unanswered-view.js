// <qd-deck-unanswered>: questions that got no answer, or one that the user did not like, and their export.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { formatCount, formatTime, shortId } from './format.js';
import { View } from './view.js';

/** @type {Record<string, string>} */
const reasons = { no_evidence: 'no evidence', refused: 'refused', error: 'error', thumbs_down: 'thumbs down' };

class UnansweredView extends View {
  #list = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Questions' });
  #actions = h(
    'div',
    { class: 'row', hidden: true },
    h('button', { 'data-testid': 'export-records', onclick: () => this.#export('records') }, 'Export as records'),
    h('button', { 'data-testid': 'export-cases', onclick: () => this.#export('cases') }, 'Export as cases'),
    h('span', { class: 'quiet' }, 'Exports the selected questions, or all.'),
  );

  build() {
    this.append(
      h('h2', {}, 'Unanswered questions'),
      h('p', { class: 'quiet' }, 'Reading this list, and each export, is in the audit log.'),
      this.notice,
      this.#actions,
      this.#list,
    );
  }

  async load() {
    /** @type {Api.UnansweredList} */
    const { questions, isComplete, hint } = await get('unanswered');
    this.#actions.hidden = questions.length === 0;
    if (hint) return fill(this.#list, h('p', { class: 'empty', 'data-testid': 'not-kept' }, hint));
    if (questions.length === 0) return fill(this.#list, h('p', { class: 'empty' }, 'Every kept question got an answer.'));
    const head = ['', 'Question', 'Why', 'Comment', 'Session', 'Asked'].map((name) => h('th', { scope: 'col' }, name));
    const rows = questions.map((question) =>
      h(
        'tr',
        { 'data-testid': 'unanswered' },
        h('td', {}, this.#choice(question)),
        h('th', { scope: 'row' }, question.question),
        h('td', {}, reasons[question.reason] ?? question.reason),
        h('td', {}, question.comment ?? ''),
        h('td', {}, h('a', { href: `#sessions/${question.sessionId}`, title: question.sessionId }, shortId(question.sessionId))),
        h('td', {}, formatTime(question.atMs)),
      ),
    );
    fill(
      this.#list,
      h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
      !isComplete && h('p', { class: 'quiet' }, 'Only the latest are shown.'),
    );
  }

  /** @param {Api.UnansweredQuestion} question */
  #choice({ sessionId, turn, question }) {
    const label = `Select: ${question}`;
    return h('input', { type: 'checkbox', 'aria-label': label, 'data-session': sessionId, 'data-turn': turn });
  }

  /** @param {'records' | 'cases'} form */
  #export(form) {
    const chosen = [...this.#list.querySelectorAll('input:checked')].flatMap((input) =>
      input instanceof HTMLInputElement
        ? [{ sessionId: input.dataset.session ?? '', turn: Number(input.dataset.turn) }]
        : [],
    );
    void this.attempt(async () => {
      /** @type {Api.UnansweredExport} */
      const file = await send('POST', 'unanswered/export', chosen.length > 0 ? { form, questions: chosen } : { form });
      save(file.name, file.text);
      this.showNotice(`Exported ${formatCount(file.questions)} questions to ${file.name}.`);
    });
  }
}

/** @param {string} name @param {string} text */
function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  h('a', { href: url, download: name }).click();
  // The browser has taken it by then.
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

customElements.define('qd-deck-unanswered', UnansweredView);
