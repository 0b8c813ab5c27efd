// <qd-deck-live>: audit events as they happen.

import { fill, h, setText } from '../shared/dom.js';
import { events } from '../shared/sse.js';
import { request } from './api.js';
import { lineView } from './audit-line.js';
import { View } from './view.js';

const MAX_LINES = 200;
const RECONNECT_DELAY_MS = 2_000;

class LiveView extends View {
  #list = h('ol', { class: 'lines', 'aria-label': 'Live lines, newest first', 'data-testid': 'live' });
  #empty = h(
    'p',
    { class: 'empty' },
    'No events yet. Talk to the agent on ',
    h('a', { href: '/' }, 'the page'),
    ', or try a tool in the ',
    h('a', { href: '#playground' }, 'playground'),
    '.',
  );
  #state = h('span', { class: 'quiet', role: 'status', 'data-testid': 'live-state' });
  #all = h('input', { type: 'checkbox', onchange: () => this.#draw() });
  #pause = h('button', { 'aria-pressed': 'false', 'data-testid': 'live-pause', onclick: () => this.#toggle() }, 'Pause');
  /** @type {import('./audit-line.js').Line[]} */
  #lines = [];
  #isPaused = false;
  /** Lines that arrived while paused. */
  #waiting = 0;
  #stop = new AbortController();

  build() {
    const bar = h(
      'div',
      { class: 'row' },
      h('h2', {}, 'Live events'),
      this.#state,
      h('label', { class: 'push' }, this.#all, ' all events, not only calls'),
      this.#pause,
    );
    this.append(bar, this.notice, this.#empty, this.#list);
    // An unfolded line must not move while it is read; new lines are added when it is folded.
    const closed = () => this.#waiting > 0 && !this.#isHeld && this.#draw();
    this.#list.addEventListener('toggle', closed, { capture: true });
  }

  get #isHeld() {
    return this.#isPaused || this.#list.querySelector('details[open]') !== null;
  }

  async load() {
    this.#stop.abort();
    this.#stop = new AbortController();
    void this.#follow(this.#stop.signal);
  }

  leave() {
    this.#stop.abort();
  }

  /** @param {AbortSignal} signal */
  async #follow(signal) {
    while (!signal.aborted) {
      try {
        const response = await request('live', { signal });
        setText(this.#state, 'connected');
        this.showNotice('');
        for await (const event of events(response)) this.#take(event);
      } catch (error) {
        if (signal.aborted) return;
        setText(this.#state, 'not connected');
        this.showNotice(
          error instanceof TypeError
            ? 'Connection lost. Reconnecting…'
            : String(error instanceof Error ? error.message : error),
          true,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_DELAY_MS));
    }
  }

  /** @param {import('./audit-line.js').Line} event */
  #take(event) {
    if (typeof event.lost === 'number') return this.showNotice(`${event.lost} events were skipped; find them in the audit log.`);
    this.#lines = [event, ...this.#lines].slice(0, MAX_LINES);
    if (!this.#isHeld) return this.#add(event);
    if (this.#isShown(event)) this.#waiting += 1;
    this.#count();
  }

  #count() {
    setText(this.#state, this.#waiting > 0 ? `connected, ${this.#waiting} new` : 'connected');
  }

  #toggle() {
    this.#isPaused = !this.#isPaused;
    this.#pause.setAttribute('aria-pressed', String(this.#isPaused));
    if (!this.#isPaused) this.#draw();
  }

  #draw() {
    fill(this.#list);
    this.#waiting = 0;
    this.#count();
    for (const line of this.#lines.toReversed()) this.#add(line);
  }

  /** @param {import('./audit-line.js').Line} line */
  #isShown(line) {
    return this.#all.checked || (line.event === 'tool_execution' && line.source !== 'handler');
  }

  /** @param {import('./audit-line.js').Line} line */
  #add(line) {
    if (!this.#isShown(line)) return;
    this.#empty.hidden = true;
    this.#list.prepend(h('li', {}, lineView(line)));
    while (this.#list.childElementCount > MAX_LINES) this.#list.lastElementChild?.remove();
  }
}

customElements.define('qd-deck-live', LiveView);
