// <qd-deck-tasks>: calls that go on in the background, and cancelling them.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { formatTime, shortId } from './format.js';

export class TasksView extends HTMLElement {
  #list = h('div', { 'data-testid': 'tasks' });
  #notice = h('p', { class: 'notice', role: 'status' });

  connectedCallback() {
    if (!this.#list.isConnected) this.append(this.#list);
  }

  async refresh() {
    const { tasks, isComplete } = await get('tasks');
    if (tasks.length === 0) return fill(this.#list);
    const head = ['Task', 'Tool', 'Client', 'Status', 'Began', 'Ended', ''].map((name) => h('th', { scope: 'col' }, name));
    const rows = tasks.map((task) =>
      h(
        'tr',
        { 'data-testid': 'task', 'data-status': task.status },
        h('th', { scope: 'row', title: task.id }, shortId(task.id)),
        h('td', {}, task.tool),
        h('td', { title: task.clientId }, shortId(task.clientId)),
        h('td', {}, task.status),
        h('td', {}, formatTime(task.startedMs)),
        h('td', {}, task.endedMs ? formatTime(task.endedMs) : ''),
        h('td', {}, task.status === 'running' && this.#button(task.id)),
      ),
    );
    fill(
      this.#list,
      h('h2', {}, 'Background tasks'),
      !isComplete && h('p', { class: 'quiet' }, 'Older tasks are not shown.'),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Background tasks' },
        h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
      ),
    );
  }

  /** @param {string} id */
  #button(id) {
    return h(
      'button',
      { 'aria-label': `Cancel task ${id}`, 'data-testid': 'cancel-task', onclick: () => this.#cancel(id) },
      'Cancel',
    );
  }

  /** @param {string} id */
  async #cancel(id) {
    try {
      await send('DELETE', `tasks/${encodeURIComponent(id)}`);
      this.#notice.textContent = `${shortId(id)} was told to stop.`;
    } catch (error) {
      this.#notice.textContent = error instanceof Error ? error.message : String(error);
    }
    this.prepend(this.#notice);
    await this.refresh();
  }
}

customElements.define('qd-deck-tasks', TasksView);
