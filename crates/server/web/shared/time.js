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

const moment = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

/**
 * A timestamp in the reader's time zone and language, or null if it is not one.
 *
 * @param {unknown} value
 * @returns {string | null}
 */
export function localTime(value) {
  if (typeof value !== 'string' || !moment.test(value)) return null;
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return null;
  return date.toLocaleString(undefined, {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  });
}

/**
 * A text with its timestamps in the reader's time zone.
 *
 * @param {string} text
 */
export function inLocalTime(text) {
  return text.replace(/\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})/g, (found) => localTime(found) ?? found);
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
