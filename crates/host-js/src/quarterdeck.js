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

/** What is wrong with an answer, before it is returned: `{ valid, errors }`. */
export function validateToolResponse(response) {
  const errors = [];
  if (response === null || typeof response !== 'object' || Array.isArray(response)) {
    return { valid: false, errors: ['the answer is not an object'] };
  }
  if (typeof response.ok !== 'boolean') errors.push('`ok` is missing or not a boolean');
  if (response.ok === true && response.error !== undefined) errors.push('`ok` is true and `error` is present');
  if (response.ok === false) {
    if (response.data !== undefined) errors.push('`ok` is false and `data` is present');
    if (typeof response.error?.type !== 'string') errors.push('`error.type` is missing');
    if (typeof response.error?.message !== 'string') errors.push('`error.message` is missing');
  }
  if (response.intents !== undefined && !Array.isArray(response.intents)) errors.push('`intents` is not an array');
  return { valid: errors.length === 0, errors };
}
