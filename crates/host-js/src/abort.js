// AbortController and AbortSignal, and the signal of the call. Only engines of handlers that name one of them have it.
// A handler that breaks a prototype breaks these for itself alone.

import { define, Question } from 'quarterdeck:prelude';

/** Installs the globals, and hands the signal of the call and what fires it to `bindSignal`. */
export function installAbort(host, bindSignal) {
  const KEY = {};
  let make;
  let fire;

  class DOMException extends Error {
    constructor(message = '', name = 'Error') {
      super(message);
      Object.defineProperty(this, 'name', { value: `${name}`, configurable: true, writable: true });
    }
  }

  class AbortSignal {
    #look;
    #aborted = false;
    #reason;
    #fired = false;
    #listeners = [];
    onabort = null;
    constructor(key, look) {
      if (key !== KEY) throw new TypeError('Illegal constructor');
      this.#look = look;
    }
    static {
      make = (look) => new AbortSignal(KEY, look);
      fire = (signal, reason) => signal.#fire(reason);
    }
    static abort(reason = aborted()) {
      const signal = make();
      signal.#fire(reason);
      return signal;
    }
    static timeout(ms) {
      const signal = make();
      setTimeout(() => signal.#fire(new DOMException('The operation timed out.', 'TimeoutError')), ms);
      return signal;
    }
    static any(signals) {
      const signal = make();
      for (const one of signals) {
        if (one.aborted) {
          signal.#fire(one.reason);
          break;
        }
        one.addEventListener('abort', () => signal.#fire(one.reason), { once: true });
      }
      return signal;
    }
    // A handler that computes learns of it here, before there is a chance to call its listeners.
    #learn() {
      const reason = this.#aborted ? undefined : this.#look?.();
      if (reason === undefined) return;
      this.#aborted = true;
      this.#reason = reason;
    }
    get aborted() {
      this.#learn();
      return this.#aborted;
    }
    get reason() {
      this.#learn();
      return this.#reason;
    }
    throwIfAborted() {
      if (this.aborted) throw this.#reason;
    }
    addEventListener(type, listener, options) {
      const known = ([other]) => other === listener;
      if (type !== 'abort' || !listener || this.#fired || this.#listeners.some(known)) return;
      this.#listeners.push([listener]);
      options?.signal?.addEventListener('abort', () => this.removeEventListener(type, listener));
    }
    removeEventListener(type, listener) {
      this.#listeners = this.#listeners.filter(([other]) => other !== listener);
    }
    #fire(reason) {
      this.#learn();
      if (this.#fired) return;
      this.#fired = true;
      if (!this.#aborted) {
        this.#aborted = true;
        this.#reason = reason;
      }
      const listeners = this.#listeners;
      this.#listeners = [];
      const event = { type: 'abort', target: this, currentTarget: this };
      for (const [listener] of [...listeners, [this.onabort]]) {
        try {
          if (typeof listener === 'function') listener.call(this, event);
          else listener?.handleEvent?.(event);
        } catch (error) {
          console.error('a listener of an AbortSignal failed:', error);
        }
      }
    }
  }

  class AbortController {
    #signal = make();
    get signal() { return this.#signal; }
    abort(reason = aborted()) { fire(this.#signal, reason); }
  }

  function aborted() {
    return new DOMException('This operation was aborted.', 'AbortError');
  }

  /** Why the call should stop, if it should. Uncaught, it becomes the fitting error of the call. */
  function reasonOfCall() {
    const text = host.ask(Question.abortReason);
    if (text === '') return undefined;
    const { message, isDeadline } = JSON.parse(text);
    const reason = new DOMException(message, isDeadline ? 'TimeoutError' : 'AbortError');
    const hidden = (name, value) => Object.defineProperty(reason, name, { value, configurable: true });
    hidden('type', isDeadline ? 'TRANSIENT' : 'CANCELLED');
    hidden('retryable', isDeadline);
    if (isDeadline) hidden('details', { reason: 'deadline' });
    return reason;
  }

  for (const [name, value] of Object.entries({ AbortController, AbortSignal, DOMException })) define(name, value);
  const ofCall = make(reasonOfCall);
  bindSignal(ofCall, () => fire(ofCall, reasonOfCall()));
}
