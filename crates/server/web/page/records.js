// The records found by searches of this conversation. Nothing is fetched: a citation shows what the model has seen.

/**
 * @typedef {object} KnownRecord
 * @property {string} id
 * @property {string} [title]
 * @property {string} [type]
 * @property {string} [full_text]
 * @property {string} [snippet]
 * @property {string} [last_updated]
 * @property {string} [source_type]
 * @property {string | null} [url]
 * @property {Record<string, unknown>} [metadata]
 */

/** @typedef {import('./model.js').Message} Message */

export class Records {
  /** @type {Map<string, KnownRecord>} */
  #known = new Map();
  /** Envelopes already read. @type {WeakSet<object>} */
  #read = new WeakSet();

  /** Keeps the records in a message's results. @param {Message} message */
  collect(message) {
    for (const part of message.parts) {
      if (part.kind !== 'tool' || part.state !== 'done') continue;
      const data = part.output?.data;
      if (!data || this.#read.has(data)) continue;
      this.#read.add(data);
      for (const record of [...list(data.results), ...list(data.records)]) this.#keep(record);
    }
  }

  /** @param {string} id */
  find(id) {
    return this.#known.get(id);
  }

  /** Merges the passage of a search with the whole record of a look-up. @param {any} record */
  #keep(record) {
    if (typeof record?.id !== 'string') return;
    this.#known.set(record.id, { ...this.#known.get(record.id), ...record });
  }
}

/** @param {unknown} value @returns {any[]} */
function list(value) {
  return Array.isArray(value) ? value : [];
}
