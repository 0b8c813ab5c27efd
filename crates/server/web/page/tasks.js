// Calls that go on in the background: asks the server about them while there are any, and cancels them.

import { ApiError, fetchApi, getJson } from '../shared/api.js';
import { applyOutcome } from './model.js';

/** @typedef {import('./model.js').ToolPart} ToolPart */
/** @typedef {import('./model.js').Message} Message */

const POLL_MS = 1_000;

export class Tasks {
  #timer = 0;
  #isAsking = false;

  /** @param {import('./chat.js').Chat} chat */
  constructor(chat) {
    this.chat = chat;
  }

  /** Begins to ask if there is a call to ask about. */
  watch() {
    if (this.#timer || this.#isAsking || this.#running().length === 0) return;
    this.#timer = setTimeout(() => void this.#ask(), POLL_MS);
  }

  /** @param {ToolPart} tool */
  async cancel(tool) {
    if (!tool.taskId) return;
    tool.isCancelling = true;
    this.#changed(tool);
    try {
      await fetchApi(`/api/tasks/${encodeURIComponent(tool.taskId)}`, { method: 'DELETE' });
    } catch {
      tool.isCancelling = false;
      this.#changed(tool);
    }
  }

  async #ask() {
    this.#timer = 0;
    this.#isAsking = true;
    try {
      const { tasks } = await getJson('/api/tasks');
      for (const tool of this.#running()) {
        const task = tasks.find((/** @type {any} */ task) => task.id === tool.taskId);
        if (task?.status === 'running') {
          Object.assign(tool, { progress: task.progress, partial: task.partial });
          this.#changed(tool);
        } else {
          await this.#end(tool);
        }
      }
    } catch {
      // The server is away; it is asked again.
    } finally {
      this.#isAsking = false;
      this.watch();
    }
  }

  /** @param {ToolPart} tool */
  async #end(tool) {
    try {
      const { response } = await getJson(`/api/tasks/${encodeURIComponent(tool.taskId ?? '')}`);
      if (response) applyOutcome(tool, response);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      // It has been forgotten, and with it what it came to.
      applyOutcome(tool, { ok: false, error: { message: 'This task is no longer known.', details: { outcome: 'unknown' } } });
    }
    this.#changed(tool);
  }

  #running() {
    const parts = this.chat.messages.flatMap((message) => message.parts);
    return parts.filter((part) => part.kind === 'tool').filter((tool) => tool.state === 'background');
  }

  /** @param {ToolPart} tool */
  #changed(tool) {
    const message = this.chat.messages.find((message) => message.parts.includes(tool));
    if (message) this.chat.add(message);
  }
}
