// What was said in calls, kept by the browser until it is closed: the server tells a page what was written.

/** @typedef {import('./model.js').Message} Message */
/** @typedef {{ after: string, message: Message }} Kept where it stands, and what it is */

const KEY = 'quarterdeck.spoken';
/** The most that is kept. */
const MOST = 200;

/** Keeps what was spoken among these messages. @param {Message[]} messages */
export function keepSpoken(messages) {
  /** @type {Kept[]} */
  const kept = [];
  let after = '';
  for (const message of messages) {
    if (message.isSpoken) kept.push({ after, message: { ...message, isOpen: false } });
    else after = message.id;
  }
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept.slice(-MOST)));
  } catch {
    // It is full. What was written comes back from the server.
  }
}

/**
 * The messages with what was spoken between them.
 *
 * @param {Message[]} written
 * @returns {Message[]}
 */
export function withSpoken(written) {
  const kept = read();
  const known = new Set(written.map((message) => message.id));
  const at = (/** @type {string} */ id) => kept.filter(({ after }) => after === id).map(({ message }) => message);
  const lost = kept.filter(({ after }) => after !== '' && !known.has(after)).map(({ message }) => message);
  return [...at(''), ...written.flatMap((message) => [message, ...at(message.id)]), ...lost];
}

/** @returns {Kept[]} */
function read() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}
