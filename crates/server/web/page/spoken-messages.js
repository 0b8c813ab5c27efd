// Messages of calls, kept in session storage: the server stores the text conversation only.

import { tab } from '../shared/storage.js';

/** @typedef {import('./model.js').Message} Message */
/** @typedef {{ after: string, message: Message }} SavedMessage the message, and the id of the one before it */

const STORAGE_PREFIX = 'quarterdeck.spoken.';
const MAX_SAVED = 200;

/** Saves the spoken messages of a conversation. @param {string} id @param {Message[]} messages */
export function saveSpoken(id, messages) {
  /** @type {SavedMessage[]} */
  const saved = [];
  let after = '';
  for (const message of messages) {
    if (message.isSpoken) saved.push({ after, message: { ...message, isOpen: false } });
    else after = message.id;
  }
  tab.set(`${STORAGE_PREFIX}${id}`, JSON.stringify(saved.slice(-MAX_SAVED)));
}

/**
 * Inserts the spoken messages among the written ones.
 *
 * @param {string} id
 * @param {Message[]} written
 * @returns {Message[]}
 */
export function withSpoken(id, written) {
  const saved = read(id);
  const known = new Set(written.map((message) => message.id));
  const at = (/** @type {string} */ id) => saved.filter(({ after }) => after === id).map(({ message }) => message);
  const lost = saved.filter(({ after }) => after !== '' && !known.has(after)).map(({ message }) => message);
  return [...at(''), ...written.flatMap((message) => [message, ...at(message.id)]), ...lost];
}

/** @param {string} id @returns {SavedMessage[]} */
function read(id) {
  try {
    const saved = JSON.parse(tab.get(`${STORAGE_PREFIX}${id}`) ?? '[]');
    return Array.isArray(saved) ? saved : [];
  } catch {
    return [];
  }
}
