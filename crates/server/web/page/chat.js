// The written conversation: what was said, and the requests that carry it on.
//
// Events: `message` (detail: the message that is new or has changed), `reset`, `state`, `blocked`, `lost`, `back`.

import { Refused, ask, getJson, newId, post, untilReady } from '../shared/api.js';
import { events } from '../shared/sse.js';
import { grow, newMessage, outcome, rememberedAll, settle, toolOf } from './model.js';
import { keepSpoken, withSpoken } from './spoken.js';

/** @typedef {import('./model.js').Message} Message */
/** @typedef {import('./model.js').ToolPart} ToolPart */
/** @typedef {import('./model.js').Kept} Kept */

const KEY = 'quarterdeck.chat';
/** The conversation that was begun in this tab. */
const OWN = 'quarterdeck.own';
/** The way to the server was lost and is there again; what has happened meanwhile is to be asked for. */
const LOST = Symbol('lost');
/** How often a message is delivered again before the person has to do it. */
const ATTEMPTS = 8;

export class Chat extends EventTarget {
  /** @type {Message[]} */
  messages = [];
  isBusy = false;
  /** Our own name for the conversation; none before the first word. */
  #id = named();
  #stopping = new AbortController();

  /** Brings back what was said, as the server knows it. @returns {Promise<void>} */
  async load() {
    const wasStopped = this.#stopping.signal.aborted;
    this.#stopping = new AbortController();
    let kept = await this.#kept();
    // What was stopped takes a moment to end.
    for (let look = 0; look < 10 && wasStopped && kept?.isRunning; look += 1) {
      await sleep(200);
      kept = await this.#kept();
    }
    if (!kept) return;
    const written = rememberedAll(kept);
    // What is told from its start needs no beginning; what waited for a word goes on where it was.
    const goesOn = kept.isRunning && kept.messages.at(-1)?.metadata?.ending === null ? written.at(-1) : undefined;
    if (goesOn?.parts.length === 0) written.pop();
    this.messages = withSpoken(written);
    this.#tell('reset');
    if (!kept.isRunning) return;
    const lost = await this.#run(() => this.#follow(), goesOn && goesOn.parts.length > 0 ? goesOn : null);
    if (lost === LOST) await this.load();
  }

  /** Says something. @param {string} text */
  async say(text) {
    if (!this.#id) {
      this.#name(newId());
      sessionStorage.setItem(OWN, this.#id);
    }
    const said = newMessage(newId(), 'user', text);
    this.add(said);
    await this.#deliver(said);
  }

  /**
   * A person's word about a call that waits for it.
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
    const wasBusy = this.isBusy;
    const error = await this.#run(() => this.#post(body), message);
    if (tool.state !== 'asked') return;
    // Whoever stopped it, or lost the way, does not know what came of it. The server does.
    const isHeard = !wasBusy && (!(error instanceof Refused) || error.type === 'CONFIRMATION_INVALID');
    if (isHeard) return this.load();
    tool.asked = (tool.asked ?? 0) + 1;
    this.#tell('message', message);
  }

  /** Nobody has answered the question about a call in time. @param {ToolPart} tool */
  expire(tool) {
    if (tool.state !== 'asked') return;
    settle(tool, 'expired');
    const message = this.messages.find((message) => message.parts.includes(tool));
    if (message) this.add(message);
  }

  /** Has the last message answered anew, or delivered if it was refused. */
  async again() {
    const said = this.messages.findLast((message) => message.role === 'user' && !message.isSpoken);
    if (!said || this.isBusy) return;
    const since = this.messages.splice(this.messages.indexOf(said) + 1);
    this.messages.push(...since.filter((message) => message.isSpoken));
    this.#tell('reset');
    // What was refused at the door has no answer with a name.
    const isTaken = since.some((message) => !message.isSpoken && message.id !== '');
    if (!isTaken) return this.#deliver(said);
    const body = { messages: [wire(said)], trigger: 'regenerate-message' };
    if ((await this.#run(() => this.#post(body), null)) === LOST) await this.load();
  }

  /** Stops the answer that is being written. */
  stop() {
    this.#stopping.abort();
  }

  /** Leaves this conversation for a new one. */
  async leave() {
    this.stop();
    const old = this.#id;
    this.#name('');
    this.messages = [];
    keepSpoken([]);
    this.#tell('reset');
    // Another tab may still be in a conversation that was not begun here.
    if (!old || sessionStorage.getItem(OWN) !== old) return;
    await ask(`/api/sessions/${encodeURIComponent(old)}`, { method: 'DELETE' }).catch(() => {});
  }

  /** Adds a message, or tells that one has changed. @param {Message} message */
  add(message) {
    if (!this.messages.includes(message)) this.messages.push(message);
    if (message.isSpoken && !message.isOpen) keepSpoken(this.messages);
    this.#tell('message', message);
  }

  /** @param {string} id */
  #name(id) {
    this.#id = id;
    // The next tab begins with this conversation; those that are open keep their own.
    for (const storage of [sessionStorage, localStorage]) storage.setItem(KEY, id);
  }

  /** The conversation as the server keeps it; nothing when it does not say. @returns {Promise<Kept | null>} */
  async #kept() {
    const nothing = { messages: [], isRunning: false };
    try {
      return this.#id ? await getJson(`/api/sessions/${encodeURIComponent(this.#id)}`) : nothing;
    } catch (error) {
      if (!(error instanceof Refused)) {
        await this.#reconnect();
        return this.#kept();
      }
      if (error.status !== 404) return null;
      // The conversation has ended: the next one has another name.
      this.#name('');
      return nothing;
    }
  }

  /**
   * Delivers a message until it is answered. The server knows it by its id, so that twice is once.
   *
   * @param {Message} said
   */
  async #deliver(said) {
    await this.#run(() => this.#post({ messages: [wire(said)], trigger: 'submit-message' }), null, true);
  }

  /**
   * Opens a stream and follows it to its end. What is lost on the way is asked for again. Gives what went wrong.
   *
   * @param {() => Promise<Response | null>} open
   * @param {Message | null} goesOn the message that the answer continues
   * @param {boolean} [mayRepeat] whether the same request can be made twice
   */
  async #run(open, goesOn, mayRepeat = false) {
    if (this.isBusy) return null;
    this.#stopping = new AbortController();
    this.#busy(true);
    const answer = goesOn ?? newMessage('', 'assistant');
    answer.isOpen = true;
    this.add(answer);
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          await this.#read(await open(), answer, goesOn === null);
          return null;
        } catch (error) {
          if (!isLoss(error) || attempt === ATTEMPTS) throw error;
          await this.#reconnect(error instanceof Refused ? error.retryAfter : 0);
          if (!mayRepeat) return LOST;
        }
      }
    } catch (error) {
      this.#failed(answer, error, goesOn === null);
      return error;
    } finally {
      answer.isOpen = false;
      if (answer.parts.length === 0) this.messages = this.messages.filter((message) => message !== answer);
      this.#tell('message', answer);
      this.#busy(false);
    }
  }

  /** @param {Response | null} response @param {Message} answer @param {boolean} isNew */
  async #read(response, answer, isNew) {
    if (!response) return;
    for await (const part of events(response)) {
      if (part.type === 'start') {
        answer.id = part.messageId ?? answer.id;
        // Whoever asks a second time is told everything from the start.
        if (isNew) answer.parts = [];
      } else if (part.type === 'data-timeout') {
        this.#tell('blocked', { timeoutUntil: part.data.timeoutUntil, message: part.data.farewellMessage });
      } else if (part.type === 'data-outcome' && !toolOf(answer, part.data.callId)) {
        this.#late(part.data);
      } else {
        grow(answer, part);
      }
      this.#tell('message', answer);
    }
  }

  /** The outcome of a call of an earlier message. @param {any} data */
  #late(data) {
    for (const message of this.messages) {
      const tool = toolOf(message, data.callId);
      if (!tool) continue;
      outcome(tool, data.response);
      this.#tell('message', message);
    }
  }

  #follow() {
    return ask(`/api/chat/${encodeURIComponent(this.#id)}/stream`, { signal: this.#stopping.signal }).then(
      (response) => (response.status === 204 ? null : response),
    );
  }

  /** @param {object} body */
  #post(body) {
    const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return post('/api/chat', { id: this.#id, timeZone, locale: navigator.language, ...body }, this.#stopping.signal);
  }

  /** Waits for the server to come back. @param {number} [pause] seconds that it has asked for */
  async #reconnect(pause = 0) {
    this.#tell('lost');
    await sleep(Math.min(pause, 5) * 1_000);
    await untilReady(this.#stopping.signal);
    this.#tell('back');
  }

  /** @param {Message} answer @param {unknown} error @param {boolean} isNew */
  #failed(answer, error, isNew) {
    if (error instanceof DOMException && error.name === 'AbortError') {
      answer.parts.push({ kind: 'note', text: 'Stopped.' });
    } else if (error instanceof Refused && error.timeoutUntil) {
      this.#tell('blocked', { timeoutUntil: error.timeoutUntil, message: '' });
    } else if (error instanceof Refused) {
      // A word about a question is given again where it was asked.
      answer.parts.push({
        kind: 'trouble',
        type: error.type,
        message: error.message,
        retryable: error.retryable && isNew,
      });
    } else {
      answer.parts.push({ kind: 'trouble', type: 'TRANSIENT', message: 'The connection was lost.', retryable: isNew });
    }
  }

  /** @param {boolean} isBusy */
  #busy(isBusy) {
    this.isBusy = isBusy;
    this.#tell('state');
  }

  /** @param {string} name @param {unknown} [detail] */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** The conversation of this tab, or the last one of any. */
function named() {
  const id = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? '';
  sessionStorage.setItem(KEY, id);
  return id;
}

/** @param {number} milliseconds */
function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** A message as the AI SDK sends it. @param {Message} message */
function wire(message) {
  const parts = message.parts.flatMap((part) => (part.kind === 'text' ? [{ type: 'text', text: part.text }] : []));
  return { id: message.id, role: message.role, parts };
}

/** Whether the server, or the way to it, is gone for now. @param {unknown} error */
function isLoss(error) {
  return error instanceof TypeError || (error instanceof Refused && error.status === 503);
}
