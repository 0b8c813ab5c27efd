// How long ago something was, in words.

import { moment } from '../shared/time.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * How long ago it was: `just now`, `2 minutes ago`, `3 hours ago`, and then when.
 *
 * @param {Date} date
 * @param {Date} now
 */
export function ago(date, now) {
  const past = now.getTime() - date.getTime();
  const words = new Intl.RelativeTimeFormat(undefined, { numeric: 'always' });
  if (past < -MINUTE_MS || past >= DAY_MS) return moment(date, now);
  if (past < MINUTE_MS) return 'just now';
  if (past < HOUR_MS) return words.format(-Math.floor(past / MINUTE_MS), 'minute');
  return words.format(-Math.floor(past / HOUR_MS), 'hour');
}
