// What handlers import from 'quarterdeck'.

export const ErrorType = Object.freeze(Object.fromEntries([
  'VALIDATION', 'NOT_FOUND', 'MODE_RESTRICTED', 'BUDGET_EXCEEDED', 'LOOP_DETECTED', 'UNAVAILABLE',
  'CONFIRMATION_REQUIRED', 'CONFIRMATION_EXPIRED', 'CONFIRMATION_DENIED', 'CONFIRMATION_INVALID',
  'SESSION_INACTIVE', 'SESSION_ACTIVE', 'BLOCKED', 'TRANSIENT', 'RATE_LIMIT', 'AUTH', 'CONFLICT',
  'PERMANENT', 'CANCELLED', 'INTERNAL',
].map((name) => [name, name])));

export const IntentType = Object.freeze(Object.fromEntries([
  'END_VOICE_SESSION', 'SUPPRESS_AUDIO', 'SUPPRESS_TRANSCRIPT', 'SET_PENDING_MESSAGE',
].map((name) => [name, name])));

/** An error that becomes the `error` of the answer. `retryAfter` is in seconds, `retryAfterMs` in milliseconds. */
export class ToolError extends Error {
  constructor(type, message, options = {}) {
    super(message);
    this.name = 'ToolError';
    this.type = type;
    this.retryable = options.retryable ?? false;
    this.partialSideEffects = options.partialSideEffects ?? false;
    this.idempotencyRequired = options.idempotencyRequired ?? false;
    for (const field of ['details', 'suggestion', 'retryAfterMs', 'maxRetries', 'retryAfter']) {
      if (options[field] !== undefined) this[field] = options[field];
    }
  }
}

/** Returns the answer as it is, or throws an error that says everything that is wrong with it. */
export function validateToolResponse(response) {
  const errors = faultsOf(response);
  if (errors.length > 0) throw new TypeError(`Invalid tool response: ${errors.join('; ')}`);
  return response;
}

function faultsOf(response) {
  if (response === null || typeof response !== 'object' || Array.isArray(response)) return ['it is not an object'];
  const errors = [];
  const { ok, error, intents } = response;
  if (typeof ok !== 'boolean') errors.push('`ok` is missing or not a boolean');
  if (ok === true && error !== undefined) errors.push('`ok` is true and `error` is present');
  if (ok === false) {
    if (response.data !== undefined) errors.push('`ok` is false and `data` is present');
    if (typeof error?.type !== 'string') errors.push('`error.type` is missing');
    if (typeof error?.message !== 'string') errors.push('`error.message` is missing');
  }
  if (intents !== undefined && !Array.isArray(intents)) errors.push('`intents` is not an array');
  return errors;
}
