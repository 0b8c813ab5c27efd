// Plain words for refusals. The server's own sentence is for the model as well, so it is shown beside, not instead.

/** @type {Record<string, string>} */
const byType = {
  VALIDATION: 'The arguments did not fit the tool’s contract, so it did not run.',
  NOT_FOUND: 'There is nothing of that name.',
  MODE_RESTRICTED: 'This tool does not work in this kind of conversation; some need writing, some a call.',
  BUDGET_EXCEEDED: 'The agent has used up what it may look up or do for one message. Your next message starts afresh.',
  LOOP_DETECTED: 'The agent tried the same thing again and again, and was stopped. Say it in other words.',
  UNAVAILABLE: 'This is not available on this server.',
  CONFIRMATION_REQUIRED: 'This needs your word first.',
  CONFIRMATION_EXPIRED: 'The question was not answered in time. Nothing was done.',
  CONFIRMATION_DENIED: 'You said no. Nothing was done.',
  CONFIRMATION_INVALID: 'This question is no longer open: it was answered already, or never asked.',
  SESSION_INACTIVE: 'This conversation has ended. Your next message begins a new one.',
  SESSION_ACTIVE: 'Another conversation is open already.',
  BLOCKED: 'The agent has stopped answering you for a while.',
  TRANSIENT: 'Something is out of order for the moment.',
  RATE_LIMIT: 'That was too much at once. Wait a little and try again.',
  AUTH: 'The server may not use this service: a key is missing or wrong.',
  CONFLICT: 'Something else is under way and has to end first.',
  PERMANENT: 'This will not work, and trying again will not help.',
  CANCELLED: 'This was cancelled.',
  INTERNAL: 'Something went wrong on the server.',
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
};

/** What a type of refusal means. @param {string | undefined} type */
export function explain(type) {
  return byType[type ?? ''] ?? null;
}

/**
 * Why a call was not carried out, if its gates or its error say so.
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
const said = {
  passed: 'passed',
  changed: 'changed the arguments',
  reserved: 'counted it',
  replayed: 'answered from the record',
  refused: 'refused',
  asked: 'asks you first',
  approved: 'approved by you',
  not_reached: 'not reached',
};

/** What a gate did, in words. @param {import('./model.js').GateStep} step */
export function verdict(step) {
  return said[step.verdict] ?? step.verdict;
}
