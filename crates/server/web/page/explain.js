// Explains error types to the user. The server's message is written for the model too, so both are shown.

/** @type {Record<string, string>} */
const byType = {
  VALIDATION: 'The arguments were invalid, so the tool did not run.',
  NOT_FOUND: 'Not found.',
  MODE_RESTRICTED: 'This tool is not available in this mode. Try chat instead of a call, or a call instead of chat.',
  BUDGET_EXCEEDED: 'The agent reached its limit of tool calls for one message. Send another message to continue.',
  LOOP_DETECTED: 'The agent repeated the same call and was stopped. Rephrase your message.',
  UNAVAILABLE: 'This is not available on this server.',
  CONFIRMATION_REQUIRED: 'This needs your approval.',
  CONFIRMATION_EXPIRED: 'The approval expired. Nothing was done.',
  CONFIRMATION_DENIED: 'You denied it. Nothing was done.',
  CONFIRMATION_INVALID: 'This question is closed.',
  SESSION_INACTIVE: 'This conversation has ended. Your next message starts a new one.',
  SESSION_ACTIVE: 'Another conversation is already open.',
  BLOCKED: 'You are blocked for now.',
  TRANSIENT: 'A temporary problem occurred. Try again.',
  RATE_LIMIT: 'Too many requests. Wait and try again.',
  AUTH: 'The server cannot use this service: a key is missing or wrong.',
  CONFLICT: 'Another action is in progress. Wait until it ends.',
  PERMANENT: 'This failed, and trying again will not help.',
  CANCELLED: 'This was cancelled.',
  INTERNAL: 'An error occurred on the server.',
};

/** @type {Record<string, string>} */
const byGate = {
  arguments: 'VALIDATION',
  well_formed: 'VALIDATION',
  known_tool: 'NOT_FOUND',
  mode: 'MODE_RESTRICTED',
  budget: 'BUDGET_EXCEEDED',
  loop: 'LOOP_DETECTED',
  availability: 'UNAVAILABLE',
  confirmation: 'CONFIRMATION_REQUIRED',
  latency: 'MODE_RESTRICTED',
};

/** @param {string | undefined} type */
export function explain(type) {
  return byType[type ?? ''] ?? null;
}

/**
 * Why a call did not run, from its gates or its error.
 *
 * @param {import('./model.js').ToolPart} tool
 */
export function explainCall(tool) {
  if (tool.state === 'denied') return byType.CONFIRMATION_DENIED;
  if (tool.state === 'expired') return byType.CONFIRMATION_EXPIRED;
  if (tool.state !== 'failed') return null;
  const refusal = tool.gates?.findLast((step) => step.verdict === 'refused');
  const kind = typeof refusal?.note === 'string' ? refusal.note : byGate[refusal?.gate ?? ''];
  return explain(tool.errorType ?? kind);
}

/** @type {Record<string, string>} */
const verdicts = {
  passed: 'passed',
  changed: 'changed the arguments',
  reserved: 'counted it',
  replayed: 'replayed the recorded answer',
  refused: 'refused',
  asked: 'needs your approval',
  approved: 'approved by you',
  scheduled: 'scheduled',
  not_reached: 'not reached',
};

/** @type {Record<string, string>} */
const schedules = {
  inline: 'waits for it',
  filler: 'says something meanwhile',
  background: 'goes on in the background',
};

/** @param {import('./model.js').GateStep} step */
export function verdict(step) {
  if (step.verdict === 'scheduled') return schedules[step.note?.schedule] ?? step.verdict;
  return verdicts[step.verdict] ?? step.verdict;
}
