// The figures over time, as far as the page has them. Only what is new is asked for.

/** @typedef {{ everyMs: number, at: number[], text: number[], voice: number[], tools: Record<string, Record<string, Row>> }} Columns */
/** Times and tokens have gaps where nothing was called. @typedef {(number | null)[]} Row */

/** How many samples a range has. */
const most = { hour: 360, days: 576 };
/** What a row holds where nothing was called. @type {Record<string, number | null>} */
const nothing = { calls: 0, errors: 0, refused: 0, p50: null, p95: null, tokens: null, tokensP95: null };
const names = Object.keys(nothing);

export class Samples {
  /** @type {number[]} */
  at = [];
  /** @type {number[]} */
  text = [];
  /** @type {number[]} */
  voice = [];
  /** @type {Record<string, Record<string, Row>>} */
  #tools = {};

  /** @param {'hour' | 'days'} range */
  constructor(range) {
    this.range = range;
  }

  /** What to ask for: everything after this moment. */
  get after() {
    return this.at.at(-1) ?? 0;
  }

  /** @param {Columns} columns */
  add(columns) {
    // Two questions at the same time have the same answer.
    if (columns.at.length === 0 || columns.at[0] <= this.after) return;
    const known = this.at.length;
    // A tool that was called for the first time has done nothing before.
    for (const tool of Object.keys(columns.tools))
      this.#tools[tool] ??= Object.fromEntries(names.map((name) => [name, empty(name, known)]));
    for (const [tool, rows] of Object.entries(this.#tools)) {
      for (const name of names) rows[name].push(...(columns.tools[tool]?.[name] ?? empty(name, columns.at.length)));
    }
    this.at.push(...columns.at);
    this.text.push(...columns.text);
    this.voice.push(...columns.voice);
    const surplus = this.at.length - most[this.range];
    if (surplus > 0)
      for (const row of [this.at, this.text, this.voice, ...Object.values(this.#tools).flatMap((rows) => Object.values(rows))])
        row.splice(0, surplus);
  }

  /** One tool's row. @param {string} tool @param {string} name @returns {Row} */
  of(tool, name) {
    return this.#tools[tool]?.[name] ?? empty(name, this.at.length);
  }

  /** The most that any tool has at each moment. @param {string} name @returns {Row} */
  most(name) {
    const rows = Object.values(this.#tools).map((rows) => rows[name]);
    return this.at.map((_, place) => {
      const known = rows.flatMap((row) => row[place] ?? []);
      return known.length > 0 ? Math.max(...known) : null;
    });
  }

  /** All tools together. @param {string} name @returns {number[]} */
  all(name) {
    return this.at.map((_, place) => Object.values(this.#tools).reduce((sum, rows) => sum + (rows[name]?.[place] ?? 0), 0));
  }
}

/** @param {string} name @param {number} count @returns {Row} */
function empty(name, count) {
  return new Array(count).fill(nothing[name]);
}
