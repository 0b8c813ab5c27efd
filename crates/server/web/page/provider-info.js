// Shows which model answers, and that the built-in rehearsal is not a language model.

import { fill, h } from '../shared/dom.js';

const REHEARSAL =
  'No usable model is configured, so the built-in rehearsal answers. It follows rules and is not a language model; the tools, ' +
  'gates and records are real.';
const SIMULATOR =
  'Calls use the built-in simulator. It does not hear yet: type into the call, and it answers aloud.';

/** @param {HTMLButtonElement} chip @param {HTMLElement} more @param {Api.Me} me */
export function showProvider(chip, more, me) {
  const isRehearsal = me.isRehearsal;
  const name = isRehearsal ? h('span', {}, 'Rehearsal', h('span', { class: 'long' }, ', no language model')) : me.model;
  fill(chip, h('span', { class: isRehearsal ? 'dot rehearsal' : 'dot' }), name);
  chip.hidden = false;
  fill(
    more,
    h('h2', {}, 'Models'),
    h(
      'dl',
      { class: 'fields' },
      h('dt', {}, 'Text'),
      h('dd', {}, me.model),
      h('dt', {}, 'Voice'),
      h('dd', {}, me.voice?.model ?? 'off'),
    ),
    isRehearsal && h('p', {}, REHEARSAL),
    me.voice &&
      !me.voice.hears &&
      h('p', {}, SIMULATOR, ' ', h('code', {}, 'quarterdeck speech install'), ' gives it ears and a voice; then restart the server.'),
    isRehearsal &&
      h(
        'p',
        {},
        'Set ',
        h('code', {}, 'OPENAI_API_KEY'),
        ', ',
        h('code', {}, 'GEMINI_API_KEY'),
        ' or ',
        h('code', {}, 'ANTHROPIC_API_KEY'),
        ' and restart the server to use a model.',
      ),
    ...(isRehearsal ? me.localServers.map(offer) : []),
  );
}

/** A model server on the machine of the server. @param {Api.Me['localServers'][number]} server */
function offer(server) {
  return h(
    'p',
    { 'data-testid': 'local-server' },
    h('bdi', {}, server.name),
    ' runs on this machine. Restart the server with ',
    h('code', {}, server.variable),
    ' to use it.',
  );
}
