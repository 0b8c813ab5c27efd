// The figures over time, as far as the page has them. Only what is new is asked for.

/** @typedef {{ everyMs: number, at: number[], text: number[], voice: number[], tools: Record<string, Record<string, number[]>> }} Columns */

/** How many samples a range has. */
const most = { hour: 360, days: 576 };
const names = ['calls', 'errors', 'refused', 'p50', 'p95', 'tokens', 'tokensP95'];

export class Samples {
  /** @type {number[]} */
  at = [];
  /** @type {number[]} */
  text = [];
  /** @type {number[]} */
  voice = [];
  /** @type {Record<string, Record<string, number[]>>} */
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
      this.#tools[tool] ??= Object.fromEntries(names.map((name) => [name, new Array(known).fill(0)]));
    for (const [tool, rows] of Object.entries(this.#tools)) {
      for (const name of names) rows[name].push(...(columns.tools[tool]?.[name] ?? new Array(columns.at.length).fill(0)));
    }
    this.at.push(...columns.at);
    this.text.push(...columns.text);
    this.voice.push(...columns.voice);
    const surplus = this.at.length - most[this.range];
    if (surplus > 0)
      for (const row of [this.at, this.text, this.voice, ...Object.values(this.#tools).flatMap((rows) => Object.values(rows))])
        row.splice(0, surplus);
  }

  /** One tool's row. @param {string} tool @param {string} name @returns {number[]} */
  of(tool, name) {
    return this.#tools[tool]?.[name] ?? new Array(this.at.length).fill(0);
  }

  /** All tools together. @param {string} name @returns {number[]} */
  all(name) {
    return this.at.map((_, place) => Object.values(this.#tools).reduce((sum, rows) => sum + (rows[name]?.[place] ?? 0), 0));
  }
}
