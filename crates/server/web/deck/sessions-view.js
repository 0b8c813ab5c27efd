// <qd-deck-sessions>: all sessions, the timeline of one, and blocked clients.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { BlocksView } from './blocks-view.js';
import { confirmAction } from './confirm-dialog.js';
import { conversationView } from './conversation.js';
import { timeline } from './timeline.js';
import { View } from './view.js';
import { formatCount, formatTime, shortId } from './format.js';

class SessionsView extends View {
  #client = h('input', { name: 'client', autocomplete: 'off', spellcheck: 'false', 'data-testid': 'sessions-client' });
  #mode = h(
    'select',
    {},
    h('option', { value: '' }, 'text and voice'),
    h('option', { value: 'text' }, 'text'),
    h('option', { value: 'voice' }, 'voice'),
  );
  #active = h('input', { type: 'checkbox' });
  #list = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Sessions' });
  #one = h('section', { class: 'card', 'data-testid': 'session', hidden: true });
  #words = h('div', {});
  #blocks = new BlocksView();

  build() {
    const search = h(
      'form',
      {
        class: 'row',
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          void this.attempt(() => this.#refresh());
        },
      },
      h('label', {}, 'Client ', this.#client),
      h('label', {}, 'Mode ', this.#mode),
      h('label', {}, this.#active, ' open only'),
      h('button', {}, 'Show'),
    );
    this.append(h('h2', {}, 'Sessions'), search, this.notice, this.#one, this.#list, this.#blocks);
  }

  /** @param {string} id */
  async load(id) {
    this.#one.hidden = id === '';
    await Promise.all([this.#refresh(), id && this.#open(id), this.#blocks.refresh()]);
  }

  async #refresh() {
    const query = {
      client: this.#client.value.trim(),
      mode: this.#mode.value,
      active: this.#active.checked ? 'true' : '',
      limit: 100,
    };
    const { sessions, matching, isComplete, lookedAt } = await get('sessions', query);
    if (sessions.length === 0) {
      return fill(
        this.#list,
        h(
          'p',
          { class: 'empty' },
          'No session matches. Start one on ',
          h('a', { href: '/' }, 'the page'),
          '.',
        ),
      );
    }
    const hasNodes = sessions.some((session) => session.node !== null);
    const names = ['Session', 'Client', 'Mode', 'State', hasNodes && 'Node', 'Turns', 'Calls', 'Last seen'];
    const head = names.filter((name) => name !== false).map((name) => h('th', { scope: 'col' }, name));
    const rows = sessions.map((session) =>
      h(
        'tr',
        { 'data-testid': 'session-row' },
        h('th', { scope: 'row' }, h('a', { href: `#sessions/${session.id}`, title: session.id }, shortId(session.id))),
        h('td', { title: session.clientId }, shortId(session.clientId)),
        h('td', {}, session.mode === 'text' ? 'written' : 'voice'),
        h('td', {}, session.isActive ? 'open' : 'ended'),
        hasNodes && h('td', { 'data-testid': 'session-node' }, session.node ?? '–'),
        h('td', { class: 'number' }, formatCount(session.turns)),
        h('td', { class: 'number' }, formatCount(session.calls)),
        h('td', {}, formatTime(session.seenMs)),
      ),
    );
    const shown = `Showing the latest ${formatCount(sessions.length)} of ${formatCount(matching)}; ${formatCount(lookedAt)} scanned.`;
    const rest = isComplete
      ? null
      : h('p', { class: 'quiet', 'data-testid': 'sessions-rest' }, `${shown} Filter by client to narrow the list.`);
    fill(this.#list, h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)), rest);
  }

  /** @param {string} id */
  async #open(id) {
    /** @type {Api.Timeline} */
    const { session, timeline: lines, isComplete, isKept } = await get(`sessions/${encodeURIComponent(id)}`);
    const facts = [
      ['Client', session.clientId],
      ['Mode', session.mode === 'text' ? 'text' : 'voice'],
      ['State', session.isActive ? 'open' : 'ended'],
      ...(session.node === null ? [] : [['Node', session.node]]),
      ['Started', formatTime(session.createdMs)],
      ['Registry', session.registryVersion],
      ['Calls', `${formatCount(session.calls)} in ${formatCount(session.turns)} turns`],
    ];
    const body = !isKept
      ? h('p', { class: 'empty' }, 'This server keeps no audit log.')
      : lines.length === 0
        ? h('p', { class: 'empty' }, 'The audit log has no lines for this session.')
        : timeline(lines, session.createdMs);
    fill(
      this.#one,
      h('div', { class: 'row' }, h('h2', { tabindex: -1 }, session.id), h('a', { class: 'push', href: '#sessions' }, 'Close')),
      h('dl', { class: 'fields' }, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
      h(
        'div',
        { class: 'row' },
        h('button', { 'data-testid': 'read-conversation', onclick: () => this.#read(id) }, 'Read the conversation'),
        session.isActive && h('button', { 'data-testid': 'end-session', onclick: () => this.#end(session) }, 'End the session…'),
        h('button', { 'data-testid': 'erase-client', onclick: () => this.#erase(session.clientId) }, 'Erase the client…'),
      ),
      !isComplete && h('p', { class: 'quiet' }, 'Only the latest lines are shown. Search the audit log for older ones.'),
      this.#words,
      body,
    );
    fill(this.#words);
    this.#one.querySelector('h2')?.focus();
  }

  /** Opens what was said, which the audit log records first. @param {string} id */
  async #read(id) {
    await this.attempt(async () => {
      const at = `sessions/${encodeURIComponent(id)}`;
      /** @type {Api.KeptConversation} */
      const conversation = await get(`conversations/${encodeURIComponent(id)}`);
      /** @type {Api.Timeline} */
      const { session, timeline: lines } = await get(at);
      this.#one.querySelector('[data-testid=timeline]')?.remove();
      fill(this.#words, conversationView(conversation, lines, session.createdMs));
      this.showNotice('This opening is in the audit log.');
    });
  }

  /** @param {Api.SessionSummary} session */
  async #end({ id, mode }) {
    const text =
      mode === 'voice'
        ? 'The caller is told and the call ends.'
        : 'Writes in progress finish. The next message starts a new session.';
    if (!(await confirmAction({ title: 'End this session?', text, action: 'End' }))) return;
    await this.attempt(async () => {
      await send('DELETE', `sessions/${encodeURIComponent(id)}`);
      await this.load(id);
      this.showNotice('Session ended.');
    });
  }

  /** @param {string} client */
  async #erase(client) {
    const text = `This erases all data of ${client}: conversations, calls and stored values. The audit log and a block stay. It cannot be undone.`;
    if (!(await confirmAction({ title: 'Erase this client?', text, action: 'Erase', word: 'erase' }))) return;
    await this.attempt(async () => {
      /** @type {Api.EraseResult} */
      const { rows, isComplete } = await send('POST', 'clients/erase', { clientId: client, confirm: 'erase' });
      location.hash = 'sessions';
      await this.load('');
      this.showNotice(
        isComplete
          ? `Erased ${formatCount(rows)} rows.`
          : `Erased ${formatCount(rows)} rows, but the client is still active. Try again.`,
        !isComplete,
      );
    });
  }
}

customElements.define('qd-deck-sessions', SessionsView);
