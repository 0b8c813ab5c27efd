// What a conversation consists of, and how it grows with each part of the server's stream.

/** @typedef {{ gate: string, verdict: string, note?: unknown }} GateStep */
/**
 * @typedef {{
 *   callId: string, token: string, tool: string, args: unknown, preview: string, expires: number
 * }} Question
 */
/** @typedef {'running' | 'asked' | 'done' | 'failed' | 'denied' | 'expired' | 'unknown'} ToolState */
/** @typedef {{ kind: 'text', text: string }} TextPart */
/** @typedef {{ kind: 'thought', text: string }} ThoughtPart */
/**
 * @typedef {{
 *   kind: 'tool', id: string, name: string, input: unknown, state: ToolState, output?: any, error?: string,
 *   errorType?: string, progress?: string, gates?: GateStep[], question?: Question, asked?: number, began?: number,
 *   took?: number, isApproved?: boolean
 * }} ToolPart
 */
/** @typedef {{ kind: 'offer', sessionId: string, pendingRequest: string }} OfferPart */
/** @typedef {{ kind: 'trouble', type: string, message: string, retryable: boolean }} TroublePart */
/** @typedef {{ kind: 'note', text: string, mayAsk?: boolean }} NotePart */
/** @typedef {TextPart | ThoughtPart | ToolPart | OfferPart | TroublePart | NotePart} Part */
/** @typedef {{ id: string, role: 'user' | 'assistant', parts: Part[], isOpen: boolean, isSpoken?: boolean }} Message */
/** @typedef {{ timeoutUntil: string, message: string }} Block */
/** A conversation as the server keeps it. @typedef {{ messages: any[], isRunning: boolean }} Kept */

/**
 * An empty message.
 *
 * @param {string} id
 * @param {'user' | 'assistant'} role
 * @param {string} [text]
 * @returns {Message}
 */
export function newMessage(id, role, text) {
  return { id, role, parts: text ? [{ kind: 'text', text }] : [], isOpen: false };
}

/** @param {Message} message */
export function textOf(message) {
  return message.parts
    .map((part) => (part.kind === 'text' ? part.text : ''))
    .filter(Boolean)
    .join('\n\n');
}

/**
 * The call of that id.
 *
 * @param {Message} message
 * @param {string} id
 * @returns {ToolPart | undefined}
 */
export function toolOf(message, id) {
  for (const part of message.parts) {
    if (part.kind === 'tool' && part.id === id) return part;
  }
  return undefined;
}

/**
 * Puts a question about a call. What follows is the person's time, not the call's.
 *
 * @param {ToolPart} tool
 * @param {Question} question
 */
export function asks(tool, question) {
  Object.assign(tool, { state: 'asked', question, began: undefined, took: undefined });
}

/** What a call came to. @param {ToolPart} tool @param {ToolState} state @param {Partial<ToolPart>} [more] */
export function settle(tool, state, more = {}) {
  Object.assign(tool, more, { state, progress: undefined });
  if (tool.began && tool.took === undefined) tool.took = Date.now() - tool.began;
  const measured = tool.output?.meta?.duration;
  if (typeof measured === 'number') tool.took = measured;
}

/**
 * Puts a part of the stream into the message that it belongs to. Parts that we do not know are left alone.
 *
 * @param {Message} message
 * @param {any} part
 */
export function grow(message, part) {
  switch (part.type) {
    case 'text-start':
      message.parts.push({ kind: 'text', text: '' });
      break;
    case 'reasoning-start':
      message.parts.push({ kind: 'thought', text: '' });
      break;
    case 'text-delta':
    case 'reasoning-delta': {
      // Blocks follow each other, so what grows is the last one.
      const kind = part.type === 'text-delta' ? 'text' : 'thought';
      const last = message.parts.findLast((old) => old.kind === kind);
      if (last && 'text' in last) last.text += part.delta;
      break;
    }
    case 'tool-input-available':
    case 'tool-input-error':
      called(message, part);
      break;
    case 'error':
      message.parts.push(trouble(part.errorText));
      break;
    case 'abort':
      message.parts.push({ kind: 'note', text: 'Stopped.' });
      break;
    case 'finish':
      if (part.finishReason === 'length') message.parts.push({ kind: 'note', text: LIMIT });
      break;
    case 'data-voice-session-start':
      message.parts.push({
        kind: 'offer',
        sessionId: part.data.sessionId,
        pendingRequest: part.data.pendingRequest ?? '',
      });
      break;
    case 'data-left-out':
      message.parts.push({ kind: 'note', text: part.data.message });
      break;
    case 'data-history-trimmed':
      message.parts.push({
        kind: 'note',
        text: 'The beginning of this long conversation is no longer known to the model.',
      });
      break;
    default:
      aboutCall(message, part);
  }
}

/** @param {Message} message @param {any} part */
function called(message, part) {
  const tool = toolOf(message, part.toolCallId);
  if (tool) return;
  const isBroken = part.type === 'tool-input-error';
  message.parts.push({
    kind: 'tool',
    id: part.toolCallId,
    name: part.toolName,
    input: part.input,
    began: Date.now(),
    state: isBroken ? 'failed' : 'running',
    error: isBroken ? part.errorText : undefined,
  });
}

/** What happens to a call that the message has. @param {Message} message @param {any} part */
function aboutCall(message, part) {
  const tool = toolOf(message, part.toolCallId ?? part.data?.callId ?? part.data?.toolCallId ?? part.id ?? '');
  if (!tool) return;
  switch (part.type) {
    case 'tool-approval-request':
      tool.state = 'asked';
      break;
    case 'data-confirmation':
      asks(tool, part.data);
      break;
    case 'data-progress':
      tool.progress = part.data.text;
      break;
    case 'data-gates':
      tool.gates = part.data.gates;
      break;
    case 'tool-output-available':
      settle(tool, 'done', { output: part.output });
      break;
    case 'tool-output-error':
      // Nobody answered in time: that is all there is to say.
      if (tool.state !== 'expired') settle(tool, 'failed', { error: part.errorText });
      break;
    case 'tool-output-denied':
      settle(tool, 'denied');
      break;
    case 'data-outcome':
      outcome(tool, part.data.response);
      break;
  }
}

/** The outcome of a call, from its envelope. @param {ToolPart} tool @param {any} envelope */
export function outcome(tool, envelope) {
  if (envelope?.ok) settle(tool, 'done', { output: envelope });
  else if (envelope?.error?.type === 'CONFIRMATION_DENIED') settle(tool, 'denied');
  else if (envelope?.error?.type === 'CONFIRMATION_EXPIRED') settle(tool, 'expired');
  else settle(tool, 'failed', { error: envelope?.error?.message, errorType: envelope?.error?.type });
}

/** The text of an error part is JSON, and may be anything. @param {string} text @returns {TroublePart} */
function trouble(text) {
  try {
    const { type, message, retryable } = JSON.parse(text);
    if (typeof message === 'string') return { kind: 'trouble', type, message, retryable: retryable === true };
  } catch {
    // It is for people as it stands.
  }
  return { kind: 'trouble', type: 'INTERNAL', message: text, retryable: true };
}

const LIMIT = 'The answer reached its limit and ends here.';

/**
 * The messages of a conversation as the server keeps it.
 *
 * @param {Kept} kept
 * @returns {Message[]}
 */
export function rememberedAll({ messages, isRunning }) {
  return messages.map((kept, place) => {
    const isLast = place === messages.length - 1;
    const message = remembered(kept);
    if (isLast && isRunning) return message;
    for (const part of message.parts) if (part.kind === 'tool') notAnswered(part);
    if (message.role === 'assistant') message.parts.push(...rest(message, kept.metadata?.ending, isLast));
    return message;
  });
}

/** @param {any} kept @returns {Message} */
function remembered(kept) {
  const message = newMessage(kept.id, kept.role === 'user' ? 'user' : 'assistant');
  for (const part of kept.parts ?? []) {
    if (part.type === 'text') message.parts.push({ kind: 'text', text: part.text });
    else if (part.type === 'dynamic-tool') message.parts.push(rememberedTool(part));
    else aboutCall(message, part);
  }
  return message;
}

/** A question that the person did not answer, and cannot answer any more. @param {ToolPart} tool */
function notAnswered(tool) {
  const wasAsked = tool.gates?.some((step) => step.verdict === 'asked');
  if (tool.state === 'running' || (tool.state === 'failed' && wasAsked)) settle(tool, 'expired');
}

/**
 * What a person would have seen after the words: an offer to talk, and why there is nothing more.
 *
 * @param {Message} message
 * @param {unknown} ending
 * @param {boolean} isLast whether it can still be asked again
 * @returns {Part[]}
 */
function rest(message, ending, isLast) {
  /** @type {Part[]} */
  const parts = [];
  for (const part of message.parts) {
    if (!isLast || part.kind !== 'tool' || part.name !== 'start_voice_session' || part.state !== 'done') continue;
    const { session_id: sessionId, pending_request: pendingRequest } = part.output?.data ?? {};
    if (sessionId) parts.push({ kind: 'offer', sessionId, pendingRequest: pendingRequest ?? '' });
  }
  if (ending === 'aborted') parts.push({ kind: 'note', text: 'This answer was cut off.', mayAsk: isLast });
  if (ending === 'failed') parts.push({ kind: 'note', text: 'This answer broke off.', mayAsk: isLast });
  if (ending === 'empty') parts.push({ kind: 'note', text: 'The model gave no answer.', mayAsk: isLast });
  if (ending === 'cut') parts.push({ kind: 'note', text: LIMIT });
  return parts;
}

/** @param {any} part @returns {ToolPart} */
function rememberedTool(part) {
  /** @type {Record<string, ToolState>} */
  const states = { 'output-available': 'done', 'output-error': 'failed', 'output-denied': 'denied' };
  return {
    kind: 'tool',
    id: part.toolCallId,
    name: part.toolName,
    input: part.input,
    output: part.output,
    state: states[part.state] ?? 'running',
    error: part.errorText,
    took: part.output?.meta?.duration,
  };
}
