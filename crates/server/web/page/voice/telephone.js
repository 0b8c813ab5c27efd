// Calls: begins one at a time, shows it, and brings its words back to the chat.

import { newId } from '../../shared/api.js';
import { newMessage } from '../model.js';
import { Call } from './call.js';
import { CallView } from './call-view.js';

/** @typedef {import('../model.js').ToolPart} ToolPart */

/** Events: `state`, `notice`, `blocked`. */
export class Telephone extends EventTarget {
  /** @type {Call | null} */
  #call = null;
  /** Whether whoever answers understands only what is typed. */
  isTyped = false;
  /** Ends what the chat hears of the call. */
  #hearing = new AbortController();

  /**
   * @param {HTMLElement} view
   * @param {import('../chat.js').Chat} chat
   * @param {HTMLElement} composer where the focus goes afterwards
   */
  constructor(view, chat, composer) {
    super();
    if (!(view instanceof CallView)) throw new Error('the page has no view of a call');
    this.view = view;
    this.chat = chat;
    this.composer = composer;
    view.addEventListener('stop-call', () => this.hangUp());
    // Whoever leaves the page hangs up: otherwise the chat would be paused for a call that nobody is in.
    addEventListener('pagehide', () => this.#leave());
  }

  get isOn() {
    return this.#call !== null;
  }

  /**
   * Calls the agent; an offer of its own says in which session and about what.
   *
   * @param {{ sessionId?: string, pendingRequest?: string }} offer
   */
  async call({ sessionId, pendingRequest }) {
    if (this.#call) return;
    this.chat.stop();
    const call = new Call({ sessionId, pendingRequest: pendingRequest || undefined }, this.isTyped);
    this.#call = call;
    this.#hearing = new AbortController();
    const { signal } = this.#hearing;
    call.addEventListener('message', (event) => this.chat.add(detail(event)), { signal });
    call.addEventListener('blocked', (event) => this.#tell('blocked', detail(event)));
    call.addEventListener('notice', (event) => this.#tell('notice', detail(event)));
    call.addEventListener('over', (event) => this.#over(detail(event)));
    this.view.show(call);
    this.#tell('state');
    await call.begin();
  }

  hangUp() {
    this.#call?.stop();
  }

  /** Hangs up at once, and nothing more is said about it: the conversation is another one. */
  forget() {
    this.#hearing.abort();
    this.#call?.drop();
  }

  /** Silences the agent. */
  interrupt() {
    this.#call?.interrupt();
  }

  /** @param {string} text */
  say(text) {
    this.#call?.say(text);
  }

  /** @param {ToolPart} tool @param {boolean} isApproved */
  decide(tool, isApproved) {
    this.#call?.decide(tool, isApproved);
  }

  /** @param {{ text?: string, notice?: string }} end */
  #over({ text, notice }) {
    this.#call = null;
    const hadFocus = this.view.contains(document.activeElement);
    this.view.hide();
    const isHeard = !this.#hearing.signal.aborted;
    if (text && isHeard) this.chat.add({ ...newMessage(newId(), 'assistant', text), isSpoken: true });
    if (notice) this.#tell('notice', notice);
    this.#tell('state');
    if (hadFocus) this.composer.focus();
  }

  /** Whoever comes back reads what was said last, and why nobody speaks any more. */
  #leave() {
    if (!this.#call) return;
    this.#call.drop();
    if (!this.chat.messages.some((message) => message.isSpoken)) return;
    const end = newMessage(newId(), 'assistant');
    end.parts.push({ kind: 'note', text: 'The call ended when the page was left.' });
    this.chat.add({ ...end, isSpoken: true });
  }

  /** @param {string} name @param {unknown} [what] */
  #tell(name, what) {
    this.dispatchEvent(new CustomEvent(name, { detail: what }));
  }
}

/** @param {Event} event */
function detail(event) {
  return /** @type {CustomEvent} */ (event).detail;
}
