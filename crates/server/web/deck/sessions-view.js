// <qd-deck-sessions>: everybody's sessions, what happened in one, and who is blocked.

import { fill, h } from '../shared/dom.js';
import { get, send } from './api.js';
import { BlocksView } from './blocks-view.js';
import { sure } from './sure.js';
import { timeline } from './timeline.js';
import { View } from './view.js';
import { short, whole, when } from './words.js';

/** @typedef {{ id: string, clientId: string, mode: string, isActive: boolean, turns: number, calls: number, registryVersion: string, createdMs: number, seenMs: number }} Session */

class SessionsView extends View {
  #client = h('input', { name: 'client', autocomplete: 'off', spellcheck: 'false', 'data-testid': 'sessions-client' });
  #mode = h(
    'select',
    {},
    h('option', { value: '' }, 'written and spoken'),
    h('option', { value: 'text' }, 'written'),
    h('option', { value: 'voice' }, 'spoken'),
  );
  #active = h('input', { type: 'checkbox' });
  #list = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Sessions' });
  #one = h('section', { class: 'card', 'data-testid': 'session', hidden: true });
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
      h('label', {}, this.#active, ' open ones only'),
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
    const asked = {
      client: this.#client.value.trim(),
      mode: this.#mode.value,
      active: this.#active.checked ? 'true' : '',
      limit: 100,
    };
    const { sessions, matching, isComplete, lookedAt } = await get('sessions', asked);
    if (sessions.length === 0) {
      return fill(
        this.#list,
        h(
          'p',
          { class: 'empty' },
          'There is no such session. One begins when somebody writes or speaks on ',
          h('a', { href: '/' }, 'the page'),
          '.',
        ),
      );
    }
    const head = ['Session', 'Client', 'Mode', 'State', 'Turns', 'Calls', 'Last seen'].map((name) =>
      h('th', { scope: 'col' }, name),
    );
    const rows = sessions.map((/** @type {Session} */ session) =>
      h(
        'tr',
        { 'data-testid': 'session-row' },
        h('th', { scope: 'row' }, h('a', { href: `#sessions/${session.id}`, title: session.id }, short(session.id))),
        h('td', { title: session.clientId }, short(session.clientId)),
        h('td', {}, session.mode === 'text' ? 'written' : 'spoken'),
        h('td', {}, session.isActive ? 'open' : 'ended'),
        h('td', { class: 'number' }, whole(session.turns)),
        h('td', { class: 'number' }, whole(session.calls)),
        h('td', {}, when(session.seenMs)),
      ),
    );
    const shown = `The latest ${whole(sessions.length)} of ${whole(matching)} are shown; ${whole(lookedAt)} were looked at.`;
    const rest = isComplete
      ? null
      : h('p', { class: 'quiet', 'data-testid': 'sessions-rest' }, `${shown} Name a client to find theirs.`);
    fill(this.#list, h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)), rest);
  }

  /** @param {string} id */
  async #open(id) {
    /** @type {{ session: Session, timeline: any[], isComplete: boolean, isKept: boolean }} */
    const { session, timeline: lines, isComplete, isKept } = await get(`sessions/${encodeURIComponent(id)}`);
    const facts = [
      ['Client', session.clientId],
      ['Mode', session.mode === 'text' ? 'written' : 'spoken'],
      ['State', session.isActive ? 'open' : 'ended'],
      ['Begun', when(session.createdMs)],
      ['Registry', session.registryVersion],
      ['Calls', `${whole(session.calls)} in ${whole(session.turns)} turns`],
    ];
    const story = !isKept
      ? h('p', { class: 'empty' }, 'This server keeps no audit trail, so nobody knows what happened.')
      : lines.length === 0
        ? h('p', { class: 'empty' }, 'The trail has nothing about this session.')
        : timeline(lines, session.createdMs);
    fill(
      this.#one,
      h('div', { class: 'row' }, h('h2', { tabindex: -1 }, session.id), h('a', { class: 'push', href: '#sessions' }, 'Close')),
      h('dl', { class: 'fields' }, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
      h(
        'div',
        { class: 'row' },
        session.isActive && h('button', { 'data-testid': 'end-session', onclick: () => this.#end(session) }, 'End the session…'),
        h('button', { 'data-testid': 'erase-client', onclick: () => this.#erase(session.clientId) }, 'Erase the client…'),
      ),
      !isComplete && h('p', { class: 'quiet' }, 'The beginning is too far back to be shown; the audit search goes further.'),
      story,
    );
    this.#one.querySelector('h2')?.focus();
  }

  /** @param {Session} session */
  async #end({ id, mode }) {
    const text =
      mode === 'voice'
        ? 'Whoever is on the line is told, and the call ends.'
        : 'What has begun to write finishes. Their next message begins a new session.';
    if (!(await sure({ title: 'End this session?', text, action: 'End it' }))) return;
    await this.attempt(async () => {
      await send('DELETE', `sessions/${encodeURIComponent(id)}`);
      await this.load(id);
      this.tell('The session has ended.');
    });
  }

  /** @param {string} client */
  async #erase(client) {
    const text = `Everything that is kept of ${client} is erased: conversations, calls and what tools remember. The audit trail and a block stay. This cannot be undone.`;
    if (!(await sure({ title: 'Erase this client?', text, action: 'Erase', word: 'erase' }))) return;
    await this.attempt(async () => {
      const { rows, isComplete } = await send('POST', 'clients/erase', { clientId: client, confirm: 'erase' });
      location.hash = 'sessions';
      await this.load('');
      this.tell(
        isComplete
          ? `${whole(rows)} rows were erased.`
          : `${whole(rows)} rows were erased, but the client is still talking. Try again in a moment.`,
        !isComplete,
      );
    });
  }
}

customElements.define('qd-deck-sessions', SessionsView);
