// Starts one call at a time, shows it, and adds its transcript to the chat.

import { newId } from '../../shared/api.js';
import { focusedBeside } from '../../shared/dom.js';
import { newMessage } from '../model.js';
import { Call } from './call.js';
import { CallView } from './call-view.js';

/** @typedef {import('../model.js').ToolPart} ToolPart */

/** Events: `state`, `notice`, `blocked`. */
export class CallController extends EventTarget {
  /** @type {Call | null} */
  #call = null;
  /** @type {import('./call.js').VoiceAbilities} */
  abilities = { hears: true, speaks: true };
  /** Ends the chat's subscription to the call. */
  #subscription = new AbortController();

  /**
   * @param {HTMLElement} view
   * @param {import('../chat.js').Chat} chat
   * @param {HTMLElement} composer takes the focus afterwards
   */
  constructor(view, chat, composer) {
    super();
    if (!(view instanceof CallView)) throw new Error('no call view');
    this.view = view;
    this.chat = chat;
    this.composer = composer;
    view.addEventListener('stop-call', () => this.hangUp());
    // Leaving the page ends the call; otherwise the chat would stay paused.
    addEventListener('pagehide', () => this.#onPageHide());
  }

  get isOn() {
    return this.#call !== null;
  }

  /**
   * Starts a call; an offer of the agent names the session and the request.
   *
   * @param {{ sessionId?: string, pendingRequest?: string }} offer
   */
  async call({ sessionId, pendingRequest }) {
    if (this.#call) return;
    this.chat.stop();
    const call = new Call({ sessionId, pendingRequest: pendingRequest || undefined }, this.abilities);
    this.#call = call;
    this.#subscription = new AbortController();
    const { signal } = this.#subscription;
    call.addEventListener('message', (event) => this.chat.add(detail(event)), { signal });
    call.addEventListener('blocked', (event) => this.#emit('blocked', detail(event)));
    call.addEventListener('notice', (event) => this.#emit('notice', detail(event)));
    call.addEventListener('over', (event) => this.#onOver(detail(event)));
    this.view.show(call);
    this.#emit('state');
    await call.begin();
  }

  hangUp() {
    this.#call?.stop();
  }

  /** Ends the call at once without adding to the chat: the conversation is another one. */
  discard() {
    this.#subscription.abort();
    this.#call?.drop();
  }

  /** Stops the agent's speech. */
  interrupt() {
    this.#call?.interrupt();
  }

  /** @param {string} text */
  sendText(text) {
    this.#call?.sendText(text);
  }

  /** @param {ToolPart} tool @param {boolean} isApproved */
  decide(tool, isApproved) {
    this.#call?.decide(tool, isApproved);
  }

  /** @param {{ text?: string, notice?: string }} end */
  #onOver({ text, notice }) {
    this.#call = null;
    const hadFocus = this.view.contains(focusedBeside(this.view));
    this.view.hide();
    const isSubscribed = !this.#subscription.signal.aborted;
    if (text && isSubscribed) this.chat.add({ ...newMessage(newId(), 'assistant', text), isSpoken: true });
    if (notice) this.#emit('notice', notice);
    this.#emit('state');
    if (hadFocus) this.composer.focus();
  }

  /** Notes in the chat why the call ended. */
  #onPageHide() {
    if (!this.#call) return;
    this.#call.drop();
    if (!this.chat.messages.some((message) => message.isSpoken)) return;
    const end = newMessage(newId(), 'assistant');
    end.parts.push({ kind: 'note', text: 'The call ended when the page was closed.' });
    this.chat.add({ ...end, isSpoken: true });
  }

  /** @param {string} name @param {unknown} [what] */
  #emit(name, what) {
    this.dispatchEvent(new CustomEvent(name, { detail: what }));
  }
}

/** @param {Event} event */
function detail(event) {
  return /** @type {CustomEvent} */ (event).detail;
}
