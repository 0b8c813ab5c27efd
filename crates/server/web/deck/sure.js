// Asks before something is done that cannot be undone.

import { h } from '../shared/dom.js';

/**
 * @param {{ title: string, text: string, action: string, word?: string }} question `word` has to be typed
 * @returns {Promise<boolean>} whether it may be done
 */
export function sure({ title, text, action, word }) {
  const typed = h('input', { id: 'sure-word', autocomplete: 'off', spellcheck: 'false', 'data-testid': 'sure-word' });
  const yes = h('button', { class: 'danger', value: 'yes', 'data-testid': 'sure-yes', disabled: word !== undefined }, action);
  const dialog = h(
    'dialog',
    { class: 'sure', 'aria-labelledby': 'sure-title', 'data-testid': 'sure' },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'sure-title' }, title),
      h('p', {}, text),
      word !== undefined && h('p', {}, h('label', { for: 'sure-word' }, `Type “${word}” to go on. `), typed),
      h('div', { class: 'row' }, yes, h('button', { value: 'no', formnovalidate: true }, 'Cancel')),
    ),
  );
  typed.addEventListener('input', () => (yes.disabled = typed.value.trim() !== word));
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    dialog.showModal();
  });
}
