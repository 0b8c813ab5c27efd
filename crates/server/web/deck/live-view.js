// <qd-deck-live>: calls as they end.

import { fill, h, setText } from '../shared/dom.js';
import { events } from '../shared/sse.js';
import { request } from './api.js';
import { lineView } from './line.js';
import { View } from './view.js';

/** How many lines stay. */
const MOST = 200;
/** How long to wait before a connection is made again. */
const PAUSE = 2_000;

class LiveView extends View {
  #list = h('ol', { class: 'lines', 'aria-label': 'What happened, the newest first', 'data-testid': 'live' });
  #empty = h(
    'p',
    { class: 'empty' },
    'Nothing has happened since you are here. Talk to the agent on ',
    h('a', { href: '/' }, 'the page'),
    ', or try a tool in the ',
    h('a', { href: '#playground' }, 'playground'),
    '.',
  );
  #state = h('span', { class: 'quiet', role: 'status', 'data-testid': 'live-state' });
  #all = h('input', { type: 'checkbox', onchange: () => this.#draw() });
  #pause = h('button', { 'aria-pressed': 'false', 'data-testid': 'live-pause', onclick: () => this.#toggle() }, 'Pause');
  /** @type {import('./line.js').Line[]} */
  #lines = [];
  #isPaused = false;
  /** How many lines wait while one is read. */
  #waiting = 0;
  #stop = new AbortController();

  build() {
    const bar = h(
      'div',
      { class: 'row' },
      h('h2', {}, 'As it happens'),
      this.#state,
      h('label', { class: 'push' }, this.#all, ' everything, not only calls'),
      this.#pause,
    );
    this.append(bar, this.notice, this.#empty, this.#list);
    // What is read must not move; what has come meanwhile is shown when it is closed.
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
        this.tell('');
        for await (const event of events(response)) this.#take(event);
      } catch (error) {
        if (signal.aborted) return;
        setText(this.#state, 'not connected');
        this.tell(
          error instanceof TypeError
            ? 'The connection was lost. It is made again.'
            : String(error instanceof Error ? error.message : error),
          true,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  /** @param {import('./line.js').Line} event */
  #take(event) {
    if (typeof event.lost === 'number') return this.tell(`${event.lost} events came too fast and are only in the audit trail.`);
    this.#lines = [event, ...this.#lines].slice(0, MOST);
    if (!this.#isHeld) return this.#add(event);
    if (this.#isShown(event)) this.#waiting += 1;
    this.#count();
  }

  #count() {
    const lines = this.#waiting === 1 ? 'one new line waits' : `${this.#waiting} new lines wait`;
    setText(this.#state, this.#waiting > 0 ? `connected, ${lines}` : 'connected');
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

  /** @param {import('./line.js').Line} line */
  #isShown(line) {
    return this.#all.checked || line.event === 'tool_execution';
  }

  /** @param {import('./line.js').Line} line */
  #add(line) {
    if (!this.#isShown(line)) return;
    this.#empty.hidden = true;
    this.#list.prepend(h('li', {}, lineView(line)));
    while (this.#list.childElementCount > MOST) this.#list.lastElementChild?.remove();
  }
}

customElements.define('qd-deck-live', LiveView);
