// Times and durations.

/** The server's clock minus ours, in milliseconds. */
let ahead = 0;

/**
 * Takes the server's time from a response, because expiry follows the server's clock.
 *
 * @param {Response} response
 */
export function syncClock(response) {
  const date = Date.parse(response.headers.get('date') ?? '');
  // The header has whole seconds; smaller differences do not count.
  if (!Number.isNaN(date) && Math.abs(date - Date.now()) > 2_000) ahead = date - Date.now();
}

/** The server's time in milliseconds. */
export function serverNow() {
  return Date.now() + ahead;
}

/**
 * A moment in milliseconds since 1970, from such a number or from an ISO string; `NaN` for anything else.
 *
 * @param {unknown} moment
 */
export function epochMs(moment) {
  if (typeof moment === 'number') return moment;
  return typeof moment === 'string' ? Date.parse(moment) : NaN;
}

/**
 * A duration: `38 ms`, `1.4 s`.
 *
 * @param {number} milliseconds
 */
export function duration(milliseconds) {
  if (milliseconds < 1) return 'under 1 ms';
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  return clock(milliseconds / 1_000);
}

/**
 * A countdown: `4:09`, `23:04:09`.
 *
 * @param {number} seconds
 */
export function clock(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const two = (/** @type {number} */ number) => String(number).padStart(2, '0');
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
const DAY_MS = 86_400_000;

/**
 * The moment that a timestamp means, or null if it is not one.
 *
 * @param {unknown} value
 * @returns {Date | null}
 */
export function dateOf(value) {
  if (typeof value !== 'string' || !timestamp.test(value)) return null;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? null : date;
}

/**
 * When it is, in the reader's time zone and language: `tomorrow 10:00`, `Wednesday 10:00`, `17 Jan 2090, 10:00`.
 *
 * @param {Date} date
 * @param {Date} now
 */
export function moment(date, now) {
  const time = date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  const days = dayNumber(date) - dayNumber(now);
  if (Math.abs(days) <= 1) return `${new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' }).format(days, 'day')} ${time}`;
  if (days > 0 && days < 7) return `${date.toLocaleDateString(undefined, { weekday: 'long' })} ${time}`;
  const isThisYear = date.getFullYear() === now.getFullYear();
  const year = isThisYear ? undefined : 'numeric';
  return `${date.toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short', year })}, ${time}`;
}

/** Days since 1970 in the reader's time zone. @param {Date} date */
function dayNumber(date) {
  return Math.round(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY_MS);
}

/**
 * Calls `tick` at once and then every second until it returns `false`.
 *
 * @param {() => boolean} tick
 * @returns {() => void} stops it
 */
export function everySecond(tick) {
  if (!tick()) return () => {};
  const timer = setInterval(() => {
    if (!tick()) clearInterval(timer);
  }, 250);
  return () => clearInterval(timer);
}
