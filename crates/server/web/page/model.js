// The messages of a conversation, and how parts of the server's stream change them.

import { modelReason } from '../shared/model-reasons.js';
import { serverNow } from '../shared/time.js';

/** @typedef {Api.Gate} GateStep */
/**
 * @typedef {{
 *   callId: string, token: string | null, tool: string, args: unknown, preview: string, reason?: string,
 *   expires: number, confirmBy?: 'any' | 'page' | 'code', code?: string
 * }} Question
 */
/** @typedef {{ id: string, url: string, alt: string, width: number, height: number }} ToolFile */
/** @typedef {'running' | 'background' | 'asked' | 'done' | 'failed' | 'denied' | 'expired' | 'unknown' | 'cancelled'} ToolState */
/** @typedef {{ kind: 'text', text: string }} TextPart */
/** @typedef {{ kind: 'thought', text: string }} ThoughtPart */
/**
 * @typedef {{
 *   kind: 'tool', id: string, name: string, input: unknown, state: ToolState, output?: any, error?: string,
 *   errorType?: string, progress?: string, partial?: unknown, gates?: GateStep[], question?: Question, asked?: number, began?: number,
 *   took?: number, isApproved?: boolean, files?: ToolFile[], taskId?: string, isCancelling?: boolean
 * }} ToolPart
 */
/** @typedef {{ kind: 'offer', sessionId: string, pendingRequest: string }} OfferPart */
/** @typedef {{ kind: 'error', type: string, message: string, retryable: boolean }} ErrorPart */
/** @typedef {{ kind: 'note', text: string, mayRetry?: boolean, isLoading?: boolean, isFallback?: boolean }} NotePart */
/** @typedef {TextPart | ThoughtPart | ToolPart | OfferPart | ErrorPart | NotePart} Part */
/** @typedef {{ rating: 'up' | 'down', comment?: string }} Feedback */
/**
 * @typedef {{
 *   id: string, role: 'user' | 'assistant', parts: Part[], isOpen: boolean, isSpoken?: boolean, at?: number, feedback?: Feedback
 * }} Message
 */
/** @typedef {{ timeoutUntil: number | string, message: string, lift?: string }} Block */
/** @typedef {Pick<Api.Conversation, 'messages' | 'isRunning'>} StoredSession */

/**
 * @param {string} id
 * @param {'user' | 'assistant'} role
 * @param {string} [text]
 * @returns {Message}
 */
export function newMessage(id, role, text) {
  return { id, role, parts: text ? [{ kind: 'text', text }] : [], isOpen: false, at: serverNow() };
}

/** @param {Message} message */
export function textOf(message) {
  return message.parts
    .map((part) => (part.kind === 'text' ? part.text : ''))
    .filter(Boolean)
    .join('\n\n');
}

/**
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
 * Marks a call as waiting for approval. The time until the decision is not the call's.
 *
 * @param {ToolPart} tool
 * @param {Question} question
 */
export function requestApproval(tool, question) {
  Object.assign(tool, { state: 'asked', question, began: undefined, took: undefined });
}

/** Records the end of a call. @param {ToolPart} tool @param {ToolState} state @param {Partial<ToolPart>} [more] */
export function complete(tool, state, more = {}) {
  Object.assign(tool, more, { state, progress: undefined, partial: undefined });
  if (tool.began && tool.took === undefined) tool.took = Date.now() - tool.began;
  // The answer of a call that goes on in the background is not its end.
  const { backgroundTaskId } = tool.output?.data ?? {};
  if (state === 'done' && backgroundTaskId && backgroundTaskId === tool.output?.meta?.backgroundTaskId) {
    Object.assign(tool, { state: 'background', taskId: backgroundTaskId, took: undefined });
    return;
  }
  const measured = tool.output?.meta?.duration;
  if (typeof measured === 'number') tool.took = measured;
}

/**
 * Applies a part of the stream to its message. Unknown parts are ignored.
 *
 * @param {Message} message
 * @param {any} part
 */
export function applyPart(message, part) {
  // Whatever comes after it, the model is there.
  message.parts = message.parts.filter((old) => old.kind !== 'note' || !old.isLoading);
  switch (part.type) {
    case 'text-start':
      message.parts.push({ kind: 'text', text: '' });
      break;
    case 'reasoning-start':
      message.parts.push({ kind: 'thought', text: '' });
      break;
    case 'text-delta':
    case 'reasoning-delta': {
      // Blocks do not overlap, so a delta belongs to the last one.
      const kind = part.type === 'text-delta' ? 'text' : 'thought';
      const last = message.parts.findLast((old) => old.kind === kind);
      if (last && 'text' in last) last.text += part.delta;
      break;
    }
    case 'tool-input-available':
    case 'tool-input-error':
      addCall(message, part);
      break;
    case 'error':
      message.parts.push(errorPart(part.errorText));
      break;
    case 'abort':
      message.parts.push({ kind: 'note', text: 'Stopped.' });
      break;
    case 'finish':
      if (part.finishReason === 'length') message.parts.push({ kind: 'note', text: LENGTH_NOTE });
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
    case 'data-model-loading':
      message.parts.push({ kind: 'note', text: part.data.message, isLoading: true });
      break;
    case 'data-model-fallback':
      message.parts.push({
        kind: 'note',
        text: `${part.data.fallback} answers, because ${part.data.model} failed: ${modelReason(part.data.reason)}.`,
        isFallback: true,
      });
      break;
    case 'data-history-trimmed':
      message.parts.push({
        kind: 'note',
        text: 'The model no longer sees the beginning of this conversation.',
      });
      break;
    default:
      applyCallPart(message, part);
  }
}

/** @param {Message} message @param {any} part */
function addCall(message, part) {
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

/** Applies a part about a call of the message. @param {Message} message @param {any} part */
function applyCallPart(message, part) {
  const tool = toolOf(message, part.toolCallId ?? part.data?.callId ?? part.data?.toolCallId ?? part.id ?? '');
  if (!tool) return;
  switch (part.type) {
    case 'tool-approval-request':
      tool.state = 'asked';
      break;
    case 'data-confirmation':
      requestApproval(tool, part.data);
      break;
    case 'data-progress':
      tool.progress = part.data.text;
      break;
    case 'data-gates':
      tool.gates = part.data.gates;
      break;
    case 'data-partial':
      tool.partial = part.data.data;
      break;
    case 'tool-output-available':
      if (part.preliminary) {
        tool.partial = part.output?.data;
        break;
      }
      complete(tool, 'done', { output: part.output });
      break;
    case 'tool-output-error':
      // An expired confirmation is shown as such.
      if (tool.state !== 'expired') complete(tool, 'failed', { error: part.errorText });
      break;
    case 'tool-output-denied':
      complete(tool, 'denied');
      break;
    case 'data-outcome':
      applyOutcome(tool, part.data.response);
      break;
    case 'data-file':
      addFile(tool, part.data);
      break;
  }
}

/** A file that a call has made. A stream that is read again brings it again. @param {ToolPart} tool @param {ToolFile} file */
export function addFile(tool, file) {
  const files = tool.files ?? [];
  if (!files.some((old) => old.id === file.id)) tool.files = [...files, file];
}

/** @param {ToolPart} tool @param {any} envelope */
export function applyOutcome(tool, envelope) {
  if (envelope?.ok) complete(tool, 'done', { output: envelope });
  else if (envelope?.error?.type === 'CONFIRMATION_DENIED') complete(tool, 'denied');
  else if (envelope?.error?.type === 'CONFIRMATION_EXPIRED') complete(tool, 'expired');
  else if (envelope?.error?.type === 'CANCELLED') complete(tool, 'cancelled', { error: envelope.error.message });
  else if (envelope?.error?.details?.outcome === 'unknown') complete(tool, 'unknown', { error: envelope.error.message });
  else complete(tool, 'failed', { error: envelope?.error?.message, errorType: envelope?.error?.type });
}

/** The text of an error part is usually JSON. @param {string} text @returns {ErrorPart} */
function errorPart(text) {
  try {
    const { type, message, retryable } = JSON.parse(text);
    if (typeof message === 'string') return { kind: 'error', type, message, retryable: retryable === true };
  } catch {
    // Plain text is shown as it is.
  }
  return { kind: 'error', type: 'INTERNAL', message: text, retryable: true };
}

const LENGTH_NOTE = 'The answer reached the length limit.';

/**
 * The messages of a stored conversation.
 *
 * @param {StoredSession} kept
 * @returns {Message[]}
 */
export function messagesOfSession({ messages, isRunning }) {
  /** @type {number | undefined} */
  let at;
  return messages.map((kept, place) => {
    const isLast = place === messages.length - 1;
    const message = storedMessage(kept);
    // An answer begins when its question comes.
    at = kept.metadata?.at ?? at;
    message.at = at;
    message.feedback = kept.metadata?.feedback;
    if (isLast && isRunning) return message;
    for (const part of message.parts) if (part.kind === 'tool') expireUnanswered(part);
    if (message.role === 'assistant') message.parts.push(...closingParts(message, kept.metadata?.ending, isLast));
    return message;
  });
}

/** @param {any} kept @returns {Message} */
function storedMessage(kept) {
  const message = newMessage(kept.id, kept.role === 'user' ? 'user' : 'assistant');
  for (const part of kept.parts ?? []) {
    if (part.type === 'text') message.parts.push({ kind: 'text', text: part.text });
    else if (part.type === 'dynamic-tool') message.parts.push(storedTool(part));
    else applyCallPart(message, part);
  }
  return message;
}

/** Expires a confirmation that can no longer be answered. @param {ToolPart} tool */
function expireUnanswered(tool) {
  const wasAsked = tool.gates?.some((step) => step.verdict === 'asked');
  if (tool.state === 'running' || (tool.state === 'failed' && wasAsked)) complete(tool, 'expired');
}

/**
 * What follows the text: an offer of a call, and why the answer ended.
 *
 * @param {Message} message
 * @param {unknown} ending
 * @param {boolean} isLast whether it can be retried
 * @returns {Part[]}
 */
function closingParts(message, ending, isLast) {
  /** @type {Part[]} */
  const parts = [];
  for (const part of message.parts) {
    if (!isLast || part.kind !== 'tool' || part.name !== 'start_voice_session' || part.state !== 'done') continue;
    const { session_id: sessionId, pending_request: pendingRequest } = part.output?.data ?? {};
    if (sessionId) parts.push({ kind: 'offer', sessionId, pendingRequest: pendingRequest ?? '' });
  }
  if (ending === 'aborted') parts.push({ kind: 'note', text: 'The answer was stopped.', mayRetry: isLast });
  if (ending === 'failed') parts.push({ kind: 'note', text: 'The answer failed.', mayRetry: isLast });
  if (ending === 'empty') parts.push({ kind: 'note', text: 'The model gave no answer.', mayRetry: isLast });
  if (ending === 'cut') parts.push({ kind: 'note', text: LENGTH_NOTE });
  return parts;
}

/** @param {any} part @returns {ToolPart} */
function storedTool(part) {
  /** @type {Record<string, ToolState>} */
  const states = { 'output-available': 'done', 'output-error': 'failed', 'output-denied': 'denied' };
  /** @type {ToolPart} */
  const tool = {
    kind: 'tool',
    id: part.toolCallId,
    name: part.toolName,
    input: part.input,
    output: part.output,
    state: states[part.state] ?? 'running',
    error: part.errorText,
    took: part.output?.meta?.duration,
  };
  if (tool.state === 'done') complete(tool, 'done');
  return tool;
}
