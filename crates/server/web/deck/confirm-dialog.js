// A dialog before an action that cannot be undone.

import { h } from '../shared/dom.js';

/**
 * @param {{ title: string, text: string, action: string, word?: string }} question `word` must be typed to enable the button
 * @returns {Promise<boolean>} whether the operator confirmed
 */
export function confirmAction({ title, text, action, word }) {
  const typed = h('input', { id: 'confirm-dialog-word', autocomplete: 'off', spellcheck: 'false', 'data-testid': 'confirm-dialog-word' });
  const yes = h('button', { class: 'danger', value: 'yes', 'data-testid': 'confirm-dialog-yes', disabled: word !== undefined }, action);
  const dialog = h(
    'dialog',
    { class: 'confirm-dialog', 'aria-labelledby': 'confirm-dialog-title', 'data-testid': 'confirm-dialog' },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'confirm-dialog-title' }, title),
      h('p', {}, text),
      word !== undefined && h('p', {}, h('label', { for: 'confirm-dialog-word' }, `Type “${word}” to continue. `), typed),
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
