// Formats numbers, times and ids.

/** @param {number} value */
export function formatCount(value) {
  return Math.round(value).toLocaleString();
}

/** @param {number} value */
export function formatMs(value) {
  if (value >= 10_000) return `${(value / 1_000).toFixed(0)} s`;
  if (value >= 1_000) return `${(value / 1_000).toFixed(1)} s`;
  return value > 0 && value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

/** @param {number} part @param {number} all */
export function formatShare(part, all) {
  if (all === 0) return '–';
  const percent = (100 * part) / all;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** The time alone when it is today. @param {number | string} moment */
export function formatTime(moment) {
  const date = new Date(moment);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? {} : /** @type {const} */ ({ day: 'numeric', month: 'short' });
  return date.toLocaleString(undefined, { ...day, hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1_024) return `${bytes} bytes`;
  return bytes < 1 << 20 ? `${Math.round(bytes / 1_024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

/** Shortens a long id, keeping both ends. @param {string} id */
export function shortId(id) {
  return id.length > 16 ? `${id.slice(0, 12)}…${id.slice(-3)}` : id;
}
