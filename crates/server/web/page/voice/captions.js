// The transcript of a call as messages: final segments are appended, interim ones are replaced.

import { newId } from '../../shared/api.js';
import { requestApproval, newMessage, applyOutcome, complete, textOf, toolOf } from '../model.js';

/** @typedef {import('../model.js').Message} Message */
/** @typedef {import('../model.js').TextPart} TextPart */
/** @typedef {import('../model.js').ToolPart} ToolPart */

export class Captions {
  /** The current utterance. @type {Message | null} */
  #open = null;
  /** The final part of its last text. */
  #finalText = '';
  /** @type {Message[]} */
  #all = [];

  /** @param {(message: Message) => void} changed */
  constructor(changed) {
    this.changed = changed;
  }

  /** @param {'user' | 'assistant'} role @param {string} text @param {boolean} isFinal */
  addTranscript(role, text, isFinal) {
    const message = this.#of(role);
    let last = message.parts.at(-1);
    if (last?.kind !== 'text') {
      last = { kind: 'text', text: '' };
      message.parts.push(last);
      this.#finalText = '';
    }
    last.text = (this.#finalText + text).trimStart();
    if (isFinal) this.#finalText = last.text;
    this.changed(message);
  }

  /** @param {{ callId: string, name: string, args: unknown }} call */
  addCall({ callId, name, args }) {
    const message = this.#of('assistant');
    message.parts.push({ kind: 'tool', id: callId, name, input: args, state: 'running', began: Date.now() });
    this.changed(message);
  }

  /** @param {Extract<Api.VoiceMessage, { type: 'tool_result' }>} result */
  addResult({ callId, ok, error, duration, gates, backgroundTaskId }) {
    this.#tool(callId, (tool) => {
      if (gates) tool.gates = gates;
      // The call waits for the user's approval, which is shown separately.
      if (error?.type === 'CONFIRMATION_REQUIRED') return;
      if (backgroundTaskId) {
        Object.assign(tool, { state: 'background', taskId: backgroundTaskId, progress: undefined });
        return;
      }
      tool.took = duration;
      if (ok) complete(tool, 'done');
      else applyOutcome(tool, { ok, error });
    });
  }

  /** @param {import('../model.js').Question} question */
  addQuestion(question) {
    this.#tool(question.callId, (tool) => requestApproval(tool, question));
  }

  /** @param {ToolPart} tool */
  repeatQuestion(tool) {
    this.#tool(tool.id, (tool) => Object.assign(tool, { asked: (tool.asked ?? 0) + 1 }));
  }

  /** @param {string} callId @param {string} text */
  setProgress(callId, text) {
    this.#tool(callId, (tool) => Object.assign(tool, { progress: text }));
  }

  /** @param {string} callId @param {unknown} data */
  setPartial(callId, data) {
    this.#tool(callId, (tool) => Object.assign(tool, { partial: data }));
  }

  /** Whether a tool call is running. */
  get isToolRunning() {
    return this.#all.some((message) => message.parts.some((part) => part.kind === 'tool' && part.state === 'running'));
  }

  /** Whether the agent has said it. @param {string} words */
  includes(words) {
    return this.#all.some((message) => message.role === 'assistant' && textOf(message).includes(words));
  }

  /** Ends the current utterance. */
  end() {
    if (!this.#open) return;
    this.#open.isOpen = false;
    const ended = this.#open;
    this.#open = null;
    this.changed(ended);
  }

  /** Closes the calls that will get no result. */
  abandonCalls() {
    this.end();
    for (const message of this.#all) {
      for (const part of message.parts) {
        if (part.kind === 'tool' && (part.state === 'running' || part.state === 'asked')) abandonCall(part);
      }
      this.changed(message);
    }
  }

  /** @param {'user' | 'assistant'} role @returns {Message} */
  #of(role) {
    if (this.#open?.role === role) return this.#open;
    this.end();
    const message = { ...newMessage(newId(), role), isSpoken: true, isOpen: true };
    this.#open = message;
    this.#all.push(message);
    return message;
  }

  /** @param {string} callId @param {(tool: ToolPart) => void} change */
  #tool(callId, change) {
    for (const message of this.#all) {
      const tool = toolOf(message, callId);
      if (!tool) continue;
      change(tool);
      this.changed(message);
    }
  }
}

/** @param {ToolPart} tool */
function abandonCall(tool) {
  if (tool.isApproved === false) complete(tool, 'denied');
  else if (tool.isApproved) complete(tool, 'unknown', { error: 'The call ended before the outcome arrived.' });
  else complete(tool, 'failed', { error: 'The call ended before this finished.' });
}
