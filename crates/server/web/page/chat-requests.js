// What the page asks of the server about conversations and answers, besides talking.

import { ApiError, fetchApi, post } from '../shared/api.js';
import { saveSpoken } from './spoken-messages.js';

/** @typedef {import('./chat.js').Chat} Chat */
/** @typedef {import('./model.js').Message} Message */

/** Deletes a conversation for good. Returns what went wrong, if anything. @param {Chat} chat @param {string} id */
export async function deleteConversation(chat, id) {
  if (id === chat.id) chat.startNew();
  saveSpoken(id, []);
  try {
    await fetchApi(`/api/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  } catch (error) {
    // What is not there any more is deleted.
    const isGone = error instanceof ApiError && error.status === 404;
    return isGone ? null : 'The conversation could not be deleted. Try again.';
  }
  return null;
}

/**
 * Says what the user thinks of an answer. Returns what went wrong, if anything.
 *
 * @param {Chat} chat
 * @param {Message} message
 * @param {{ rating: 'up' | 'down' | 'none', comment?: string }} feedback
 */
export async function rateAnswer(chat, message, { rating, comment }) {
  const before = message.feedback;
  message.feedback = rating === 'none' ? undefined : { rating, comment };
  chat.add(message);
  try {
    await post('/api/feedback', { sessionId: chat.id, messageId: message.id, rating, comment });
  } catch {
    message.feedback = before;
    chat.add(message);
    return 'Your rating was not received. Try again.';
  }
  return null;
}
