// The panel of the embedded chat, with the places that the page's modules fill.

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { Composer } from '../page/composer.js';

export function panel() {
  return h(
    'dialog',
    { class: 'panel', part: 'panel', 'aria-labelledby': 'title', 'data-testid': 'panel' },
    h('header', { class: 'head' }, h('h2', { id: 'title' }, 'Chat'), button('new', 'New chat', 'pen'), button('close', 'Close', 'cross')),
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Conversation' },
      h(
        'section',
        { class: 'welcome', 'data-testid': 'welcome' },
        h('p', { class: 'greeting' }, 'Ask a question, or press the microphone and talk.'),
        h('ul', { class: 'suggestions' }),
      ),
      // Answers are announced when they are complete, not word by word.
      h('div', { class: 'messages', role: 'log', 'aria-live': 'off' }),
    ),
    h('div', { class: 'record' }),
    h(
      'footer',
      { class: 'foot' },
      h('button', { type: 'button', class: 'down', hidden: true }, 'Latest'),
      h('p', { class: 'notice', role: 'status', 'data-testid': 'notice' }),
      h('div', { class: 'calls' }),
      h('div', { class: 'block-place' }),
      composer(),
      h('nav', { class: 'links', 'aria-label': 'Links', hidden: true }),
    ),
    h('div', { class: 'announce hidden', role: 'status' }),
  );
}

function composer() {
  const text = { id: 'composer', rows: 1, maxlength: 100_000, autocomplete: 'off', 'data-testid': 'composer' };
  const call = { 'data-testid': 'voice-start', 'aria-label': 'Start a call', title: 'Start a call' };
  const form = h(
    'form',
    { class: 'composer' },
    h('label', { class: 'hidden', for: 'composer' }, 'Your message'),
    h('textarea', text),
    h(
      'div',
      { class: 'composer-buttons' },
      h('button', { type: 'button', class: 'round', ...call }),
      h('button', { type: 'submit', class: 'round primary', 'data-testid': 'send' }),
    ),
  );
  const box = new Composer();
  box.append(form);
  return box;
}

/** @param {string} name @param {string} label @param {import('../shared/icons.js').IconName} shape */
function button(name, label, shape) {
  return h('button', { type: 'button', class: `plain ${name}`, 'aria-label': label, title: label, 'data-testid': name }, icon(shape));
}
