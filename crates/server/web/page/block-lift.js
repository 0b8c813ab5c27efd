// How a block is lifted, for those whose own server it is.

import { h } from '../shared/dom.js';

/** @param {string} command */
export function blockLift(command) {
  return h(
    'p',
    { class: 'quiet', 'data-testid': 'block-lift' },
    'This is your own server: lift the block on ',
    h('a', { href: '/deck#sessions' }, 'the deck'),
    ', or stop the server and run ',
    h('code', {}, command),
    '.',
  );
}
