// Suggestions for an empty conversation.

import { fill, h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';

/**
 * @type {{ icon: import('../shared/icons.js').IconName, title: string, says: string, shows: string, isVoice?: true }[]}
 */
const suggestions = [
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
  const shown = suggestions.filter((suggestion) => mayCall || !suggestion.isVoice);
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
          h('strong', {}, title),
          h('span', { class: 'says' }, `“${says}”`),
          h('span', { class: 'quiet' }, shows),
        ),
      );
    }),
  );
}
