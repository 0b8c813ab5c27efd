// Calls from the embedded chat: loaded when the first one begins.

import { CallController } from '../page/voice/call-controller.js';
import { CallView } from '../page/voice/call-view.js';

/**
 * @param {HTMLElement} place where the call is shown
 * @param {import('../page/chat.js').Chat} chat
 * @param {HTMLElement} composer
 */
export function startCalls(place, chat, composer) {
  const view = new CallView();
  view.hidden = true;
  place.append(view);
  return new CallController(view, chat, composer);
}
