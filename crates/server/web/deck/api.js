// The operators' API, with the admin token where the server requires one.

import { ApiError, fetchApi } from '../shared/api.js';

const TOKEN_KEY = 'quarterdeck-admin-token';

/** Emits `locked` when the server rejects the token. */
export const access = new EventTarget();

export function hasToken() {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

/** @param {string | null} token */
export function saveToken(token) {
  if (token === null) sessionStorage.removeItem(TOKEN_KEY);
  else sessionStorage.setItem(TOKEN_KEY, token);
}

/**
 * Requests something under `/api/deck/`.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token) headers.set('authorization', `Bearer ${token}`);
  try {
    return await fetchApi(`/api/deck/${path}`, { ...options, headers });
  } catch (error) {
    if (error instanceof ApiError && error.type === 'AUTH') access.dispatchEvent(new Event('locked'));
    throw error;
  }
}

/**
 * The responses by path.
 *
 * @typedef {{
 *   alarms: Api.AlarmList, audit: Api.AuditPage, blocks: Api.BlockList, mcp: Api.UpstreamList, nodes: Api.NodeList, overview: Api.Overview,
 *   registry: Api.RegistryView, series: Api.Series, sessions: Api.SessionList, tasks: Api.DeckTaskList,
 *   versions: Api.VersionList
 * }} Responses
 */

/**
 * @template {string} P
 * @param {P} path
 * @param {Record<string, string | number | undefined | null>} [query] empty values are left out
 * @returns {Promise<P extends keyof Responses ? Responses[P] : any>}
 */
export async function get(path, query = {}) {
  const present = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const params = new URLSearchParams(present.map(([name, value]) => [name, String(value)]));
  return (await request(present.length > 0 ? `${path}?${params}` : path)).json();
}

/**
 * @param {'POST' | 'DELETE'} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} the response body, or `null`
 */
export async function send(method, path, body) {
  const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await request(path, { method, ...json });
  return response.status === 204 ? null : response.json();
}
