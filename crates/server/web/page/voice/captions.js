// What is said in a call, as messages: pieces that stand follow each other, a guess is replaced by what comes next.

import { newId } from '../../shared/api.js';
import { asks, newMessage, outcome, settle, textOf, toolOf } from '../model.js';

/** @typedef {import('../model.js').Message} Message */
/** @typedef {import('../model.js').TextPart} TextPart */
/** @typedef {import('../model.js').ToolPart} ToolPart */

export class Captions {
  /** What is being said. @type {Message | null} */
  #open = null;
  /** What of its last words stands. */
  #stands = '';
  /** @type {Message[]} */
  #all = [];

  /** @param {(message: Message) => void} changed */
  constructor(changed) {
    this.changed = changed;
  }

  /** @param {'user' | 'assistant'} role @param {string} text @param {boolean} isFinal */
  said(role, text, isFinal) {
    const message = this.#of(role);
    let last = message.parts.at(-1);
    if (last?.kind !== 'text') {
      last = { kind: 'text', text: '' };
      message.parts.push(last);
      this.#stands = '';
    }
    last.text = (this.#stands + text).trimStart();
    if (isFinal) this.#stands = last.text;
    this.changed(message);
  }

  /** @param {{ callId: string, name: string, args: unknown }} call */
  called({ callId, name, args }) {
    const message = this.#of('assistant');
    message.parts.push({ kind: 'tool', id: callId, name, input: args, state: 'running', began: Date.now() });
    this.changed(message);
  }

  /** @param {any} result */
  result({ callId, ok, error, duration, gates }) {
    this.#tool(callId, (tool) => {
      if (gates) tool.gates = gates;
      // The model was told to wait for the person, who is still to be asked or has the question before them.
      if (error?.type === 'CONFIRMATION_REQUIRED') return;
      tool.took = duration;
      if (ok) settle(tool, 'done');
      else outcome(tool, { ok, error });
    });
  }

  /** @param {import('../model.js').Question} question */
  asked(question) {
    this.#tool(question.callId, (tool) => asks(tool, question));
  }

  /** @param {ToolPart} tool */
  askedAgain(tool) {
    this.#tool(tool.id, (tool) => Object.assign(tool, { asked: (tool.asked ?? 0) + 1 }));
  }

  /** @param {string} callId @param {string} text */
  progress(callId, text) {
    this.#tool(callId, (tool) => Object.assign(tool, { progress: text }));
  }

  /** Whether a call of the agent is under way. */
  get isLooking() {
    return this.#all.some((message) => message.parts.some((part) => part.kind === 'tool' && part.state === 'running'));
  }

  /** Whether the agent has said this. @param {string} words */
  includes(words) {
    return this.#all.some((message) => message.role === 'assistant' && textOf(message).includes(words));
  }

  /** Whatever comes next is another utterance. */
  end() {
    if (!this.#open) return;
    this.#open.isOpen = false;
    const ended = this.#open;
    this.#open = null;
    this.changed(ended);
  }

  /** Nobody will answer these calls any more. */
  giveUp() {
    this.end();
    for (const message of this.#all) {
      for (const part of message.parts) {
        if (part.kind === 'tool' && (part.state === 'running' || part.state === 'asked')) giveUp(part);
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

/** What is known of a call that nobody will tell us more about. @param {ToolPart} tool */
function giveUp(tool) {
  if (tool.isApproved === false) settle(tool, 'denied');
  else if (tool.isApproved) settle(tool, 'unknown', { error: 'The call ended before the outcome arrived.' });
  else settle(tool, 'failed', { error: 'The call was over before this was answered.' });
}
