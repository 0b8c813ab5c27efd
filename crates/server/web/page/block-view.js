// <qd-block>: the agent answers nothing for a while. Says why, and how long it still takes.

import { fill, h, setText } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { clock, everySecond, serverNow } from '../shared/time.js';

/** @typedef {import('./model.js').Block} Block */

export class BlockView extends HTMLElement {
  #stop = () => {};

  /** @param {Block} block */
  show(block) {
    this.#stop();
    const until = Date.parse(block.timeoutUntil);
    const left = h('strong', { class: 'countdown', 'data-testid': 'block-countdown', role: 'timer' });
    const why = h('blockquote', { 'data-testid': 'block-reason' }, block.message);
    fill(
      this,
      h(
        'section',
        { class: 'block', 'aria-label': 'The agent has paused' },
        h('p', {}, icon('clock'), 'The agent takes a break from this conversation for ', left, '.'),
        block.message && why,
        h(
          'p',
          { class: 'quiet' },
          'It holds for writing and for calls, also after the page is loaded again. Then you can go on.',
        ),
      ),
    );
    this.hidden = false;
    this.#stop = everySecond(() => {
      const seconds = (until - serverNow()) / 1_000;
      setText(left, clock(seconds));
      if (!(seconds > 0)) this.#over();
      return seconds > 0;
    });
  }

  #over() {
    this.hidden = true;
    fill(this);
    this.dispatchEvent(new CustomEvent('over', { bubbles: true }));
  }
}

customElements.define('qd-block', BlockView);
