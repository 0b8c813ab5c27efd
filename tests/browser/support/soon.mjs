// What a page will show, rather than what it shows this instant: it draws when it gets to it, and a machine that does
// other things besides gets to it late. What must not appear is still looked for once, after what had to appear.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { TIMEOUT_MS } from './browser.mjs';

/** Repeats a check until it holds. After the time-out, the last failure is thrown. */
export async function soon(look) {
  const end = Date.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(50);
    }
  }
}

/** What it says to a reader: these words, or words like these. */
export const says = (where, expected, why) =>
  soon(async () => is(await where.innerText(), expected, why));

/** How many there are. */
export const counts = (what, expected, why) => soon(async () => assert.equal(await what.count(), expected, why));

/** What an attribute of it holds. */
export const has = (what, attribute, expected, why) =>
  soon(async () => is(await what.getAttribute(attribute), expected, why));

const is = (seen, expected, why) =>
  expected instanceof RegExp ? assert.match(seen ?? '', expected, why) : assert.equal(seen, expected, why);
