// The metrics over time that the page has. Only newer samples are requested.

/** Times and tokens are null where nothing was called. @typedef {(number | null)[]} Row */

/** Samples per range. */
const maxSamples = { hour: 360, days: 576 };
/** Values where nothing was called. @type {Record<string, number | null>} */
const nothing = { calls: 0, errors: 0, refused: 0, p50: null, p95: null, tokens: null, tokensP95: null };
const names = /** @type {(keyof Api.ToolColumns)[]} */ (Object.keys(nothing));

export class Series {
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

  /** Request samples after this time. */
  get after() {
    return this.at.at(-1) ?? 0;
  }

  /** @param {Api.Series} columns */
  add(columns) {
    // Two requests at the same time get the same samples.
    if (columns.at.length === 0 || columns.at[0] <= this.after) return;
    const known = this.at.length;
    // A tool called for the first time has zeros before.
    for (const tool of Object.keys(columns.tools))
      this.#tools[tool] ??= Object.fromEntries(names.map((name) => [name, empty(name, known)]));
    for (const [tool, rows] of Object.entries(this.#tools)) {
      for (const name of names) rows[name].push(...(columns.tools[tool]?.[name] ?? empty(name, columns.at.length)));
    }
    this.at.push(...columns.at);
    this.text.push(...columns.text);
    this.voice.push(...columns.voice);
    const surplus = this.at.length - maxSamples[this.range];
    if (surplus > 0)
      for (const row of [this.at, this.text, this.voice, ...Object.values(this.#tools).flatMap((rows) => Object.values(rows))])
        row.splice(0, surplus);
  }

  /** @param {string} tool @param {string} name @returns {Row} */
  of(tool, name) {
    return this.#tools[tool]?.[name] ?? empty(name, this.at.length);
  }

  /** The maximum over all tools at each sample. @param {string} name @returns {Row} */
  max(name) {
    const rows = Object.values(this.#tools).map((rows) => rows[name]);
    return this.at.map((_, place) => {
      const known = rows.flatMap((row) => row[place] ?? []);
      return known.length > 0 ? Math.max(...known) : null;
    });
  }

  /** The sum over all tools. @param {string} name @returns {number[]} */
  all(name) {
    return this.at.map((_, place) => Object.values(this.#tools).reduce((sum, rows) => sum + (rows[name]?.[place] ?? 0), 0));
  }
}

/** @param {string} name @param {number} count @returns {Row} */
function empty(name, count) {
  return new Array(count).fill(nothing[name]);
}
