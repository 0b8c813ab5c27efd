// The operators' API, with the admin token where the server wants one.

import { ask, Refused } from '../shared/api.js';

const KEY = 'quarterdeck-admin-token';

/** Says `locked` when the server does not take us for an operator. */
export const door = new EventTarget();

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** @param {string | null} token */
export function keepToken(token) {
  if (token === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, token);
}

/**
 * Asks for something under `/api/deck/`.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(KEY);
  if (token) headers.set('authorization', `Bearer ${token}`);
  try {
    return await ask(`/api/deck/${path}`, { ...options, headers });
  } catch (error) {
    if (error instanceof Refused && error.type === 'AUTH') door.dispatchEvent(new Event('locked'));
    throw error;
  }
}

/**
 * @param {string} path
 * @param {Record<string, string | number | undefined | null>} [query] what is empty is left out
 */
export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const asked = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return (await request(given.length > 0 ? `${path}?${asked}` : path)).json();
}

/**
 * @param {'POST' | 'DELETE'} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} what was answered, or `null`
 */
export async function send(method, path, body) {
  const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await request(path, { method, ...json });
  return response.status === 204 ? null : response.json();
}
