// Suggestions for an empty conversation.

import { fill, h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { pageSettings } from '../shared/page-settings.js';

/**
 * @typedef {object} Suggestion
 * @property {import('../shared/icons.js').IconName} icon
 * @property {string} [title]
 * @property {string} says
 * @property {string} [shows]
 * @property {true} [isVoice]
 */

/** Those that are offered where the operator has set none. @type {Suggestion[]} */
const builtIn = [
  {
    icon: 'search',
    title: 'Ask the knowledge base',
    says: 'Who designed the Fram?',
    shows: 'Answers with sources that you can open.',
  },
  {
    icon: 'calendar',
    title: 'Book a meeting',
    says: 'Book a meeting tomorrow at 10:00 with ann@example.com',
    shows: 'Nothing is written until you approve it.',
  },
  {
    icon: 'microphone',
    title: 'Talk instead',
    says: 'I want to talk by voice about the Fram',
    isVoice: true,
    shows: 'The same agent by voice; you can interrupt it.',
  },
];

/** @param {HTMLElement} list @param {boolean} mayCall @param {(text: string) => void} send */
export function showSuggestions(list, mayCall, send) {
  const begin = (/** @type {MouseEvent} */ { currentTarget, detail }, /** @type {string} */ says) => {
    send(says);
    // After keyboard activation the focus moves to the message box.
    if (detail === 0) currentTarget?.dispatchEvent(new CustomEvent('leave', { bubbles: true }));
  };
  /** @type {Suggestion[]} */
  const set = pageSettings().suggestions.map((says) => ({ icon: 'search', says }));
  const shown = set.length > 0 ? set : builtIn.filter((suggestion) => mayCall || !suggestion.isVoice);
  fill(
    list,
    ...shown.map((suggestion) => {
      const { title, says, shows } = suggestion;
      return h(
        'li',
        {},
        h(
          'button',
          { type: 'button', 'data-testid': 'suggestion', onclick: (event) => begin(event, says) },
          icon(suggestion.icon),
          title ? h('strong', {}, title) : null,
          h('span', { class: 'says' }, title ? `“${says}”` : says),
          shows ? h('span', { class: 'quiet' }, shows) : null,
        ),
      );
    }),
  );
}
