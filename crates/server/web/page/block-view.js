// <qd-block>: the user is blocked; shows the reason and the time left.

import { fill, h, setText } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { clock, epochMs, everySecond, serverNow } from '../shared/time.js';

/** @typedef {import('./model.js').Block} Block */

export class BlockView extends HTMLElement {
  #stop = () => {};

  /** @param {Block} block */
  show(block) {
    this.#stop();
    const until = epochMs(block.timeoutUntil);
    const left = h('strong', { class: 'countdown', 'data-testid': 'block-countdown', role: 'timer' });
    const why = h('blockquote', { 'data-testid': 'block-reason' }, block.message);
    fill(
      this,
      h(
        'section',
        { class: 'block', 'aria-label': 'Blocked' },
        h('p', {}, icon('clock'), 'You are blocked for ', left, '.'),
        block.message && why,
        h(
          'p',
          { class: 'quiet' },
          'This applies to chat and calls, also after a reload.',
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
