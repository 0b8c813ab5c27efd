// What a browser keeps for this server. A page of another origin may embed several servers, so there each has its own
// keys. Where storage is blocked or full, a value lasts as long as the page.

import { isForeign, server } from './server.js';

class Kept {
  /** @type {Map<string, string>} */
  #memory = new Map();

  /** @param {'localStorage' | 'sessionStorage'} name */
  constructor(name) {
    this.name = name;
  }

  /** @param {string} key @returns {string | null} */
  get(key) {
    const name = ownKey(key);
    try {
      return this.#memory.get(name) ?? globalThis[this.name].getItem(name);
    } catch {
      return null;
    }
  }

  /** @param {string} key @param {string} value */
  set(key, value) {
    const name = ownKey(key);
    try {
      globalThis[this.name].setItem(name, value);
      this.#memory.delete(name);
    } catch {
      this.#memory.set(name, value);
    }
  }
}

/** @param {string} key */
function ownKey(key) {
  return isForeign ? `${key}@${server.origin}` : key;
}

/** Kept for this tab. */
export const tab = new Kept('sessionStorage');
/** Kept for every tab, until it is deleted. */
export const lasting = new Kept('localStorage');
