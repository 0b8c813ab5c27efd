// The text conversation: its messages and requests.
//
// Events: `message` (detail: the message that was added or changed), `reset`, `state`, `blocked`, `lost`, `back`.

import { ApiError, fetchApi, getJson, newId, post, waitUntilReady } from '../shared/api.js';
import { keepToken } from '../shared/session-token.js';
import { events } from '../shared/sse.js';
import { lasting, tab } from '../shared/storage.js';
import { applyPart, complete, messagesOfSession, newMessage, textOf, toolOf } from './model.js';
import { saveSpoken, withSpoken } from './spoken-messages.js';

/** @typedef {import('./model.js').Message} Message */
/** @typedef {import('./model.js').ToolPart} ToolPart */
/** @typedef {import('./model.js').StoredSession} StoredSession */

const CHAT_KEY = 'quarterdeck.chat';
/** The connection was lost and restored; the session must be reloaded. */
const LOST = Symbol('lost');
/** Parts that may be about a call of an earlier message. */
const LATE_PARTS = new Set(['data-outcome', 'data-file', 'data-progress', 'data-partial']);
/** Delivery attempts before the user must retry. */
const MAX_ATTEMPTS = 8;
/** The server, or the load balancer before it, has lost a node. A message that is sent again is known by its id. */
const LOST_STATUSES = new Set([502, 503, 504]);

export class Chat extends EventTarget {
  /** @type {Message[]} */
  messages = [];
  isBusy = false;
  /** Our id of the conversation; empty before the first message. */
  #id = storedId();
  #abort = new AbortController();

  /** Loads the conversation from the server. @returns {Promise<void>} */
  async load() {
    const wasStopped = this.#abort.signal.aborted;
    this.#abort = new AbortController();
    let session = await this.#fetchSession();
    // A stopped answer takes a moment to end.
    for (let look = 0; look < 10 && wasStopped && session?.isRunning; look += 1) {
      await sleep(200);
      session = await this.#fetchSession();
    }
    if (!session) return;
    const written = messagesOfSession(session);
    // A running answer is streamed from its start; one that waited for approval continues in place.
    const continued = session.isRunning && session.messages.at(-1)?.metadata?.ending === null ? written.at(-1) : undefined;
    if (continued?.parts.length === 0) written.pop();
    this.messages = withSpoken(this.#id, written);
    this.#emit('reset');
    if (!session.isRunning) return;
    const lost = await this.#run(() => this.#resumeStream(), continued && continued.parts.length > 0 ? continued : null);
    if (lost === LOST) await this.load();
  }

  /** @param {string} text */
  async send(text) {
    if (!this.#id) {
      this.#setId(newId());
      // What was said in a call before the first message is part of the same conversation.
      saveSpoken(this.#id, this.messages);
      saveSpoken('', []);
    }
    const message = newMessage(newId(), 'user', text);
    this.add(message);
    await this.#deliver(message);
  }

  /**
   * Sends the user's decision about a call that needs approval, once a running answer is complete: a click is never lost.
   *
   * @param {Message} message
   * @param {ToolPart} tool
   * @param {boolean} isApproved
   */
  async decide(message, tool, isApproved) {
    const approval = { id: tool.question?.token, approved: isApproved };
    const part = {
      type: 'dynamic-tool',
      toolName: tool.name,
      toolCallId: tool.id,
      input: tool.input,
      state: 'approval-responded',
      approval,
    };
    const body = {
      messages: [{ id: message.id, role: 'assistant', parts: [part] }],
      trigger: 'submit-message',
      messageId: message.id,
    };
    const id = this.#id;
    while (this.isBusy) await new Promise((resolve) => this.addEventListener('state', resolve, { once: true }));
    // In a conversation that was left meanwhile, the question is still open.
    if (id !== this.#id || tool.state !== 'asked') return;
    const error = await this.#run(() => this.#post(body), message);
    if (tool.state !== 'asked') return;
    // After a stop or a lost connection only the server knows the outcome.
    const isReceived = !(error instanceof ApiError) || error.type === 'CONFIRMATION_INVALID';
    if (isReceived) return this.load();
    tool.asked = (tool.asked ?? 0) + 1;
    this.#emit('message', message);
  }

  /** @param {ToolPart} tool */
  expire(tool) {
    if (tool.state !== 'asked') return;
    complete(tool, 'expired');
    const message = this.messages.find((message) => message.parts.includes(tool));
    if (message) this.add(message);
  }

  /** Regenerates the last answer, or sends the message again if it was refused. */
  async retry() {
    const message = this.messages.findLast((message) => message.role === 'user' && !message.isSpoken);
    if (!message || this.isBusy) return;
    const since = this.messages.splice(this.messages.indexOf(message) + 1);
    this.messages.push(...since.filter((message) => message.isSpoken));
    this.#emit('reset');
    // A refused message has no answer with an id.
    const isAccepted = since.some((message) => !message.isSpoken && message.id !== '');
    if (!isAccepted) return this.#deliver(message);
    const body = { messages: [wire(message)], trigger: 'regenerate-message' };
    const error = await this.#run(() => this.#post(body), null);
    if (error === LOST) return this.load();
    if (!(error instanceof ApiError) || error.status !== 400) return;
    // The session of that answer has ended, so there is nothing to write again; the question is asked anew.
    await this.load();
    await this.send(textOf(message));
  }

  /** Stops the current answer. */
  stop() {
    // A request that has ended needs no abort, which browsers would show as a failure.
    if (this.isBusy) this.#abort.abort();
  }

  /** The id of the conversation; empty before its first message. */
  get id() {
    return this.#id;
  }

  /** Starts a new conversation. The old one stays in the list. */
  startNew() {
    this.#leave('');
    saveSpoken('', []);
  }

  /** Opens a conversation of the list. @param {string} id */
  async open(id) {
    if (id === this.#id) return;
    this.#leave(id);
    await this.load();
  }

  /** @param {string} id the conversation that comes next */
  #leave(id) {
    this.stop();
    this.#setId(id);
    this.messages = [];
    this.#emit('reset');
  }

  /** Adds a message, or announces a change. @param {Message} message */
  add(message) {
    if (!this.messages.includes(message)) this.messages.push(message);
    if (message.isSpoken && !message.isOpen) saveSpoken(this.#id, this.messages);
    this.#emit('message', message);
  }

  /** @param {string} id */
  #setId(id) {
    this.#id = id;
    // A new tab opens this conversation; open tabs keep theirs.
    for (const kept of [tab, lasting]) kept.set(CHAT_KEY, id);
  }

  /**
   * The stored conversation, or null when it cannot be read or another one was opened meanwhile.
   *
   * @returns {Promise<StoredSession | null>}
   */
  async #fetchSession() {
    const id = this.#id;
    const empty = { messages: [], isRunning: false };
    try {
      const session = id ? await getJson(`/api/sessions/${encodeURIComponent(id)}`) : empty;
      return id === this.#id ? session : null;
    } catch (error) {
      if (!(error instanceof ApiError)) {
        await this.#reconnect();
        return this.#fetchSession();
      }
      if (error.status !== 404 || id !== this.#id) return null;
      // The conversation was deleted; the next one gets another id.
      this.#setId('');
      return empty;
    }
  }

  /**
   * Sends a message until it is answered. The server recognises its id, so repeats are safe.
   *
   * @param {Message} message
   */
  async #deliver(message) {
    await this.#run(() => this.#post({ messages: [wire(message)], trigger: 'submit-message' }), null, true);
  }

  /**
   * Opens a stream and reads it to its end, reconnecting when it is lost. Returns the error, if any.
   *
   * @param {() => Promise<Response | null>} open
   * @param {Message | null} continued the message that the answer extends
   * @param {boolean} [mayRepeat] whether the request may be repeated
   */
  async #run(open, continued, mayRepeat = false) {
    if (this.isBusy) return null;
    this.#abort = new AbortController();
    this.#setBusy(true);
    const answer = continued ?? newMessage('', 'assistant');
    answer.isOpen = true;
    this.add(answer);
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          await this.#readStream(await open(), answer, continued === null);
          return null;
        } catch (error) {
          if (!isConnectionLoss(error) || attempt === MAX_ATTEMPTS) throw error;
          await this.#reconnect(error instanceof ApiError ? error.retryAfter : 0);
          if (!mayRepeat) return LOST;
        }
      }
    } catch (error) {
      this.#showFailure(answer, error, continued === null);
      return error;
    } finally {
      answer.isOpen = false;
      if (answer.parts.length === 0) this.messages = this.messages.filter((message) => message !== answer);
      this.#emit('message', answer);
      this.#setBusy(false);
    }
  }

  /** @param {Response | null} response @param {Message} answer @param {boolean} isNew */
  async #readStream(response, answer, isNew) {
    if (!response) return;
    for await (const part of events(response)) {
      if (part.type === 'start') {
        answer.id = part.messageId ?? answer.id;
        keepToken(part.messageMetadata?.sessionToken);
        // A repeated request streams the answer from its start.
        if (isNew) answer.parts = [];
      } else if (part.type === 'data-timeout') {
        this.#emit('blocked', { timeoutUntil: part.data.timeoutUntil, message: part.data.farewellMessage });
      } else if (LATE_PARTS.has(part.type) && !toolOf(answer, part.data.callId)) {
        this.#applyLatePart(part);
      } else {
        applyPart(answer, part);
      }
      this.#emit('message', answer);
    }
  }

  /** Applies a part about a call in an earlier message. @param {any} part */
  #applyLatePart(part) {
    for (const message of this.messages) {
      if (!toolOf(message, part.data.callId)) continue;
      applyPart(message, part);
      this.#emit('message', message);
    }
  }

  #resumeStream() {
    return fetchApi(`/api/chat/${encodeURIComponent(this.#id)}/stream`, { signal: this.#abort.signal }).then(
      (response) => (response.status === 204 ? null : response),
    );
  }

  /** @param {object} body */
  #post(body) {
    const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return post('/api/chat', { id: this.#id, timeZone, locale: navigator.language, ...body }, this.#abort.signal);
  }

  /** Waits until the server is back. @param {number} [pause] the server's Retry-After in seconds */
  async #reconnect(pause = 0) {
    this.#emit('lost');
    await sleep(Math.min(pause, 5) * 1_000);
    await waitUntilReady(this.#abort.signal);
    this.#emit('back');
  }

  /** @param {Message} answer @param {unknown} error @param {boolean} isNew */
  #showFailure(answer, error, isNew) {
    if (error instanceof DOMException && error.name === 'AbortError') {
      answer.parts.push({ kind: 'note', text: 'Stopped.' });
    } else if (error instanceof ApiError && error.timeoutUntil) {
      this.#emit('blocked', { timeoutUntil: error.timeoutUntil, message: '' });
    } else if (error instanceof ApiError) {
      // A decision is repeated on its confirmation card, not here.
      answer.parts.push({
        kind: 'error',
        type: error.type,
        message: error.message,
        retryable: error.retryable && isNew,
      });
    } else {
      answer.parts.push({ kind: 'error', type: 'TRANSIENT', message: 'Connection lost.', retryable: isNew });
    }
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.isBusy = isBusy;
    this.#emit('state');
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** The conversation of this tab, or the latest one of any tab. */
function storedId() {
  const id = tab.get(CHAT_KEY) ?? lasting.get(CHAT_KEY) ?? '';
  tab.set(CHAT_KEY, id);
  return id;
}

/** @param {number} milliseconds */
function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** A message in the AI SDK's form. @param {Message} message */
function wire(message) {
  const parts = message.parts.flatMap((part) => (part.kind === 'text' ? [{ type: 'text', text: part.text }] : []));
  return { id: message.id, role: message.role, parts };
}

/** Whether the server is unreachable for now. @param {unknown} error */
function isConnectionLoss(error) {
  return error instanceof TypeError || (error instanceof ApiError && LOST_STATUSES.has(error.status));
}
