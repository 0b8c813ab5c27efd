// How long ago something was, in words that stay true.

import { HumanTime } from '../shared/human-time.js';
import { ago } from './ago.js';

/** @param {number} epochMs */
export function timeAgo(epochMs) {
  return new HumanTime().show(new Date(epochMs), ago);
}
