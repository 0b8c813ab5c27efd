// The server's answers, and its refusals as errors that can be shown.

import { learnTime } from './time.js';

/** A refusal, in the server's words. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {{ type?: string, message?: string, retryable?: boolean }} error
   * @param {string | null} timeoutUntil
   * @param {number} retryAfter in seconds
   */
  constructor(status, error, timeoutUntil, retryAfter) {
    super(error.message ?? `The server answered with ${status}.`);
    this.status = status;
    this.type = error.type ?? 'INTERNAL';
    this.retryable = error.retryable ?? false;
    this.timeoutUntil = timeoutUntil;
    this.retryAfter = retryAfter;
  }
}

/**
 * Asks the server. What it refuses is thrown as `Refused`; a server that is not there as a `TypeError`.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function ask(path, options = {}) {
  const response = await fetch(path, { credentials: 'same-origin', ...options });
  learnTime(response);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const retryAfter = Number(response.headers.get('retry-after') ?? 0);
  throw new Refused(response.status, body?.error ?? {}, body?.timeoutUntil ?? null, retryAfter);
}

/**
 * Asks for JSON.
 *
 * @param {string} path
 */
export async function getJson(path) {
  return (await ask(path)).json();
}

/**
 * Posts JSON.
 *
 * @param {string} path
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 */
export function post(path, body, signal) {
  return ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
}

/**
 * Waits until the server is ready, asking less and less often.
 *
 * @param {AbortSignal} signal what ends the waiting
 */
export async function untilReady(signal) {
  for (let pause = 250; !signal.aborted; pause = Math.min(pause * 1.6, 5_000)) {
    const response = await fetch('/readyz', { cache: 'no-store' }).catch(() => null);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  throw new DOMException('nobody waits any more', 'AbortError');
}

/** A name that nobody else has. Works on plain HTTP too, where `randomUUID` does not exist. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
