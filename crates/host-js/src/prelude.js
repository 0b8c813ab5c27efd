// The host's side of an engine, in JavaScript. It runs before any code of a tool, and keeps what it uses of the
// language in variables of its own: a handler may replace `JSON.parse` or `Promise.prototype.then`, and only fools
// itself. For the same reason nothing here iterates, spreads or calls a method of a prototype once a tool's code
// has run, and what holds functions of ours has no prototype, where a getter could wait for it.

const { parse, stringify } = JSON;
const { defineProperty, freeze, fromEntries, isFrozen, keys } = Object;
const { apply, construct, deleteProperty } = Reflect;
const { max, min, round } = Math;
const { isFinite } = Number;
const [SafePromise, SafeError, SafeRangeError, SafeTypeError, SafeInternalError, SafeString, SafeBytes] =
  [Promise, Error, RangeError, TypeError, InternalError, String, Uint8Array];
// Set through the engine's own accessor, this hook is handed every function of a stack, ours among them. In its place
// stands a plain property, which can be set like before and has no effect.
defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: true, enumerable: false, configurable: true });
const wellFormed = ((method) => (text) => apply(method, text, []))(String.prototype.toWellFormed);
const captureStack = ((read) => () => apply(read, new SafeError(), []))(Object.getOwnPropertyDescriptor(Error.prototype, 'stack').get);
const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

/** Defines a global, as replaceable as the language's own names. */
export function define(name, value) {
  defineOn(globalThis, name, value);
}

function defineOn(object, name, value) {
  defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/** What a capability throws. Uncaught, the host makes the fitting error of the call from its reason. */
class CapabilityError extends Error {
  #reason;
  constructor(reason, stack) {
    super(reason.message);
    this.#reason = reason;
    defineOn(this, 'name', 'CapabilityError');
    defineOn(this, 'stack', stack);
    this.code = reason.code;
    if (reason.retryAfter !== undefined) this.retryAfter = reason.retryAfter;
  }
  static reasonOf(error) {
    return isObject(error) && #reason in error ? error.#reason : undefined;
  }
}
const { reasonOf } = CapabilityError;
delete CapabilityError.reasonOf;

/** What the host answers at once, by number; `question.rs` has the same list. */
export const Question = freeze({
  __proto__: null,
  abortReason: 3, progress: 4, audit: 5, emit: 6, cancel: 7, bodyText: 8, bodyBytes: 9, parseUrl: 10, setUrl: 11,
  parseForm: 12, writeForm: 13, fact: 14,
});
const [DEBUG, INFO, WARN, ERROR] = [0, 1, 2, 3];

/** Installs the globals and returns what the host calls: `bind`, `start`, `settle`, `fail` and `failToLoad`. */
export function prepare(host, settings) {
  const { answerLimit } = settings;
  // Waiting promises and timers, by the number that the host gave them.
  const waiting = { __proto__: null };
  // Nothing reaches the host before there is a call: the top level may have run long before it.
  let isCalled = false;
  let execute;
  let origin = 0;
  let signal;
  let fireSignal;

  /**
   * A promise for something that the host does. `begin` starts it and returns its number; `watch` is given a function
   * that gives it up for a reason.
   */
  function wait(begin, finish, watch) {
    return new SafePromise((resolve, reject) => {
      // Where the handler asked for it: when it is refused, nothing of the handler is on the stack any more.
      const stack = captureStack();
      const id = begin();
      waiting[id] = { __proto__: null, resolve, reject, finish, stack };
      if (watch === undefined) return;
      watch((reason) => {
        if (waiting[id] === undefined) return;
        delete waiting[id];
        host.ask(Question.cancel, id);
        reject(reason);
      });
    });
  }

  /** Begins something that takes time and returns its number. */
  function begin(name, args) {
    if (!isCalled) throw new SafeError('this works only while a call runs');
    if (args.length > answerLimit) throw new SafeRangeError(`a request may carry ${answerLimit} bytes`);
    return host.call(name, args);
  }

  const request = (name, args) => wait(() => begin(name, stringify(args)), (value) => value);

  function settle(id, { ok, value, error }) {
    const entry = waiting[id];
    if (entry === undefined) return;
    delete waiting[id];
    if (entry.callback !== undefined) fire(entry);
    else if (ok) entry.resolve(entry.finish(value, id));
    else entry.reject(new CapabilityError(error, entry.stack));
  }

  function fire(entry) {
    try {
      apply(entry.callback, undefined, entry.args);
    } catch (error) {
      reportFailure(error);
    }
  }

  // The members of the context that stand for capabilities are the same for every call, so they are made before there
  // is one. Whether a tool may use one is decided by the runtime, which answers the request.
  const members = { __proto__: null };
  for (const [member, capability, methods] of settings.capabilities) {
    const bind = (method) => [method, { [method]: (...args) => request(`${capability}.${method}`, args) }[method]];
    members[member] = freeze(typeof methods === 'string' ? bind(methods)[1] : fromEntries(methods.map(bind)));
  }
  const progress = freeze((text) => { host.ask(Question.progress, wellFormed(SafeString(text))); });
  const emit = freeze((chunk) => host.ask(Question.emit, stringify(chunk) ?? 'null') !== '');
  const audit = freeze({
    log: (event, data) => { host.ask(Question.audit, wellFormed(SafeString(event)), stringify(data) ?? 'null'); },
  });

  // Most handlers look at one fact or none, so each is read when it is asked for, and then kept.
  const facts = { __proto__: null };
  const fact = (name) => (facts[name] ??= deepFreeze(parse(host.ask(Question.fact, name))));

  // The context is made before there is a call: an instance has only one.
  const context = freeze({
    // First, so that no capability takes the place of a fact.
    ...members,
    get clientId() { return fact('clientId'); },
    get mode() { return fact('mode'); },
    get callId() { return fact('callId'); },
    get tool() { return fact('tool'); },
    get call() { return fact('call'); },
    get session() { return fact('session'); },
    get capabilities() { return fact('capabilities'); },
    audit, progress, emit,
    get signal() { return signal; },
    voice: freeze({ isActive: () => fact('voice').isActive }),
  });

  function start(args) {
    isCalled = true;
    origin = host.now();
    if (fireSignal !== undefined) waiting[host.call('signal', '[]')] = { __proto__: null, callback: fireSignal, args: [] };
    answer({ args, context });
  }

  /** Never rejects: whatever happens is reported to the host. */
  async function answer(call) {
    let value;
    try {
      value = await execute(call);
    } catch (error) {
      return reportFailure(error);
    }
    reportAnswer(value);
  }

  function reportAnswer(value) {
    let text;
    try {
      text = stringify(value);
    } catch (error) {
      const limit = limitOf(error);
      if (limit !== undefined) return host.finish('limit', limit, '');
      return host.finish('unwritable', headOf(error), stackOf(error));
    }
    if (text === undefined) host.finish('nothing', typeof value, '');
    else if (text.length > answerLimit) host.finish('limit', 'answer', '');
    else host.finish('answer', text, '');
  }

  function reportFailure(error) {
    try {
      const limit = limitOf(error);
      if (limit !== undefined) return host.finish('limit', limit, '');
      const reason = reasonOf(error);
      if (reason !== undefined) return host.finish('capability', stringify(reason), stackOf(error));
      const failure = failureOf(error);
      if (failure === undefined) {
        // The engine throws null when it has no memory left to make an error.
        const note = error === null ? ', which is also what no memory left for an error looks like' : '';
        return host.finish('crashed', headOf(error) + note, stackOf(error));
      }
      if (failure.length > answerLimit) return host.finish('limit', 'answer', '');
      host.finish('failure', failure, '');
    } catch {
      host.finish('crashed', 'it threw something that cannot be read', '');
    }
  }

  /** The same for what the top level threw, before there is a call. */
  function failToLoad(error) {
    if (error instanceof SafeError) return reportFailureOfLoading(error);
    host.finish('crashed', `its top level threw ${describe(error)}`, '');
  }

  function reportFailureOfLoading(error) {
    const limit = limitOf(error);
    if (limit !== undefined) host.finish('limit', limit, '');
    else host.finish('crashed', headOf(error), stackOf(error));
  }

  const log = (level) => (...values) => {
    if (!isCalled) return;
    let line = '';
    for (let i = 0; i < values.length; i++) line += (i === 0 ? '' : ' ') + describe(values[i]);
    host.log(level, wellFormed(line));
  };
  define('console', {
    debug: log(DEBUG), trace: log(DEBUG), log: log(INFO), info: log(INFO), warn: log(WARN),
    error: log(ERROR), assert: (holds, ...values) => holds || log(ERROR)('Assertion failed:', ...values),
  });

  define('setTimeout', function setTimeout(callback, delay, ...args) {
    if (typeof callback !== 'function') throw new SafeTypeError('setTimeout needs a function');
    const ms = +delay;
    const id = begin('sleep', `[${ms > 0 ? min(ms, 0x7fffffff) : 0}]`);
    waiting[id] = { __proto__: null, callback, args };
    return id;
  });
  define('clearTimeout', function clearTimeout(id) {
    if (waiting[id]?.callback === undefined) return;
    delete waiting[id];
    host.ask(Question.cancel, +id);
  });

  installClock(host.now);
  define('performance', freeze({ now: () => host.now() - origin }));
  defineOn(Math, 'random', host.random);
  define('crypto', freeze({
    randomUUID: host.randomUUID,
    getRandomValues(target) {
      const bytes = new SafeBytes(target.buffer, target.byteOffset, target.byteLength);
      host.fillRandom(bytes);
      return target;
    },
  }));
  // Memory that threads would share has no use here, and lies outside the engine's own account.
  deleteProperty(globalThis, 'SharedArrayBuffer');
  deleteProperty(globalThis, 'Atomics');

  return {
    __proto__: null,
    bind(found) { execute = found; },
    bindSignal(found, fires) { [signal, fireSignal] = [found, fires]; },
    fail: reportFailure,
    failToLoad, start, settle, wait, begin,
  };
}

/** `Date` by the call's clock. Everything but "now" is the engine's own. */
function installClock(now) {
  const EngineDate = Date;
  function CallDate(...args) {
    if (new.target === undefined) return new EngineDate(now()).toString();
    return construct(EngineDate, args.length === 0 ? [now()] : args, new.target);
  }
  const { prototype, parse: parseDate, UTC } = EngineDate;
  defineProperty(CallDate, 'name', { value: 'Date' });
  defineProperty(CallDate, 'length', { value: 7 });
  defineProperty(CallDate, 'prototype', { value: prototype, writable: false });
  defineOn(CallDate, 'now', () => now());
  defineOn(CallDate, 'parse', parseDate);
  defineOn(CallDate, 'UTC', UTC);
  defineOn(prototype, 'constructor', CallDate);
  define('Date', CallDate);
}

function deepFreeze(value) {
  if (!isObject(value) || isFrozen(value)) return value;
  freeze(value);
  const names = keys(value);
  for (let i = 0; i < names.length; i++) deepFreeze(value[names[i]]);
  return value;
}

/** Which limit of the engine an error speaks of. */
function limitOf(error) {
  if (!isObject(error)) return undefined;
  if (error instanceof SafeInternalError) {
    const { message } = error;
    if (message === 'out of memory' || message === 'string too long') return 'memory';
  }
  if (error instanceof SafeRangeError && error.message === 'Maximum call stack size exceeded') return 'stack';
  return undefined;
}

/** The `error` of an envelope as JSON, if that is what was thrown: anything with a type and a message. */
function failureOf(error) {
  if (!isObject(error)) return undefined;
  const { type, message } = error;
  if (typeof type !== 'string' || typeof message !== 'string') return undefined;
  const whole = (number) => (typeof number === 'number' && isFinite(number) ? max(0, round(number)) : undefined);
  const flag = (value) => (typeof value === 'boolean' ? value : undefined);
  const { details, suggestion, retryAfter, retryAfterMs, maxRetries } = error;
  const failure = {
    type, message,
    retryable: error.retryable === true,
    partialSideEffects: flag(error.partialSideEffects),
    idempotencyRequired: flag(error.idempotencyRequired),
    suggestion: typeof suggestion === 'string' ? suggestion : undefined,
    retryAfterMs: whole(retryAfterMs) ?? whole(typeof retryAfter === 'number' ? retryAfter * 1000 : undefined),
    maxRetries: whole(maxRetries),
    details,
  };
  try {
    return stringify(failure);
  } catch {
    failure.details = undefined;
    return stringify(failure);
  }
}

/** What was thrown, without its stack. */
function headOf(error) {
  try {
    return wellFormed(error instanceof SafeError ? `${error.name}: ${error.message}` : describe(error));
  } catch {
    return '[unprintable]';
  }
}

/** Where it was thrown, or nothing. */
function stackOf(error) {
  try {
    return error instanceof SafeError ? wellFormed(SafeString(error.stack)) : '';
  } catch {
    return '';
  }
}

/** Any value in words for the operator. */
function describe(value) {
  try {
    if (typeof value === 'string') return value;
    if (value instanceof SafeError) return `${value.name}: ${value.message}\n${value.stack}`;
    if (typeof value === 'object' && value !== null) return stringify(value) ?? '[object]';
    return SafeString(value);
  } catch {
    return '[unprintable]';
  }
}
