// Requests to the server. Refusals become errors that can be shown.

import { server } from './server.js';
import { tokenHeaders } from './session-token.js';
import { syncClock } from './time.js';

/** A refusal with the server's message. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{ type?: string, message?: string, retryable?: boolean }} error
   * @param {string | null} timeoutUntil
   * @param {number} retryAfter in seconds
   */
  constructor(status, error, timeoutUntil, retryAfter) {
    super(error.message ?? `The server returned ${status}.`);
    this.status = status;
    this.type = error.type ?? 'INTERNAL';
    this.retryable = error.retryable ?? false;
    this.timeoutUntil = timeoutUntil;
    this.retryAfter = retryAfter;
  }
}

/**
 * Sends a request. A refusal is thrown as `ApiError`, an unreachable server as `TypeError`.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function fetchApi(path, options = {}) {
  const headers = new Headers(options.headers);
  for (const [name, value] of Object.entries(tokenHeaders())) headers.set(name, value);
  const response = await fetch(new URL(path, server), { credentials: 'same-origin', ...options, headers });
  syncClock(response);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const retryAfter = Number(response.headers.get('retry-after') ?? 0);
  throw new ApiError(response.status, body?.error ?? {}, body?.timeoutUntil ?? null, retryAfter);
}

/**
 * @param {string} path
 */
export async function getJson(path) {
  return (await fetchApi(path)).json();
}

/**
 * @param {string} path
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 */
export function post(path, body, signal) {
  return fetchApi(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
}

/**
 * Waits until the server is ready, polling with a growing delay.
 *
 * @param {AbortSignal} signal
 */
export async function waitUntilReady(signal) {
  for (let pause = 250; !signal.aborted; pause = Math.min(pause * 1.6, 5_000)) {
    const response = await fetch(new URL('/readyz', server), { cache: 'no-store' }).catch(() => null);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  throw new DOMException('aborted', 'AbortError');
}

/** A random id. Works on plain HTTP too, where `randomUUID` does not exist. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
