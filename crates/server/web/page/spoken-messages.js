// Messages of calls, kept in session storage: the server stores the text conversation only.

/** @typedef {import('./model.js').Message} Message */
/** @typedef {{ after: string, message: Message }} SavedMessage the message, and the id of the one before it */

const STORAGE_KEY = 'quarterdeck.spoken';
const MAX_SAVED = 200;

/** Saves the spoken messages. @param {Message[]} messages */
export function saveSpoken(messages) {
  /** @type {SavedMessage[]} */
  const saved = [];
  let after = '';
  for (const message of messages) {
    if (message.isSpoken) saved.push({ after, message: { ...message, isOpen: false } });
    else after = message.id;
  }
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(saved.slice(-MAX_SAVED)));
  } catch {
    // Storage is full; the text conversation is on the server.
  }
}

/**
 * Inserts the spoken messages among the written ones.
 *
 * @param {Message[]} written
 * @returns {Message[]}
 */
export function withSpoken(written) {
  const saved = read();
  const known = new Set(written.map((message) => message.id));
  const at = (/** @type {string} */ id) => saved.filter(({ after }) => after === id).map(({ message }) => message);
  const lost = saved.filter(({ after }) => after !== '' && !known.has(after)).map(({ message }) => message);
  return [...at(''), ...written.flatMap((message) => [message, ...at(message.id)]), ...lost];
}

/** @returns {SavedMessage[]} */
function read() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? '[]');
    return Array.isArray(saved) ? saved : [];
  } catch {
    return [];
  }
}
