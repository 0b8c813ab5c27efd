// Who answers: which model, and that the built-in rehearsal is none.

import { fill, h } from '../shared/dom.js';

const REHEARSAL =
  'No key is set, so the built-in rehearsal answers. It is no language model: it searches, quotes, books, asks and ' +
  'explains refusals by rule, and everything around it is real.';
const SIMULATOR =
  'Calls are held with the built-in simulator. It hears that you speak, but it understands only what is typed.';

/** @typedef {{ model: string, isRehearsal?: boolean, voice?: { model: string, isRehearsal: boolean } | null }} Me */

/** @param {HTMLButtonElement} chip @param {HTMLElement} more @param {Me} me */
export function showWho(chip, more, me) {
  const isRehearsal = me.isRehearsal ?? me.model.startsWith('rehearsal');
  const name = isRehearsal ? h('span', {}, 'Rehearsal', h('span', { class: 'long' }, ', no language model')) : me.model;
  fill(chip, h('span', { class: isRehearsal ? 'dot rehearsal' : 'dot' }), name);
  chip.hidden = false;
  fill(
    more,
    h('h2', {}, 'Who answers'),
    h(
      'dl',
      { class: 'fields' },
      h('dt', {}, 'in writing'),
      h('dd', {}, me.model),
      h('dt', {}, 'in speech'),
      h('dd', {}, me.voice?.model ?? 'nobody: voice is off'),
    ),
    isRehearsal && h('p', {}, REHEARSAL),
    me.voice?.isRehearsal && h('p', {}, SIMULATOR),
    isRehearsal &&
      h(
        'p',
        {},
        'Set ',
        h('code', {}, 'GEMINI_API_KEY'),
        ', ',
        h('code', {}, 'OPENAI_API_KEY'),
        ', ',
        h('code', {}, 'OPENAI_BASE_URL'),
        ' or ',
        h('code', {}, 'ANTHROPIC_API_KEY'),
        ' and start again for a real model.',
      ),
  );
}
