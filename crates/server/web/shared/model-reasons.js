// Why a model fails, in words.

/** @type {Record<string, string>} */
const reasons = {
  unreachable: 'it cannot be reached',
  unauthorised: 'it refuses the key',
  rate_limited: 'it is rate-limited',
  overloaded: 'it has trouble of its own',
  rejected: 'it does not accept the request',
  cut: 'its answer broke off',
  garbled: 'its answer cannot be read',
  silent: 'it does not answer in time',
};

/** @param {unknown} kind a kind of error, as the API names it */
export function modelReason(kind) {
  return reasons[String(kind)] ?? 'it fails';
}
