// Speaks the agent's transcript with the browser's own voice, where the server has none.
//
// Sentences are spoken one after another: browsers cut off long utterances, and what was not begun can be dropped.

/** How long browsers may take to find their voices. */
const VOICES_TIMEOUT_MS = 2_000;
/** A sentence without an end is spoken in pieces of at most this length. */
const MAX_SENTENCE_CHARS = 240;
/** What was spoken slowest, and a start that took long. Some browsers never say that an utterance has ended. */
const MAX_MS_PER_CHAR = 200;
const MAX_START_MS = 8_000;
/** What waits to be spoken; the rest is in the transcript alone. */
const MAX_QUEUED_SENTENCES = 100;

export class BrowserVoice {
  /** Begun or complete sentences that wait. @type {string[]} */
  #queue = [];
  /** Words of a sentence that is not complete. */
  #rest = '';
  /** Kept, because browsers may forget an utterance that nothing refers to. @type {SpeechSynthesisUtterance | null} */
  #current = null;
  #timer = 0;
  #isClosed = false;

  /**
   * @param {(state: 'playing' | 'empty') => void} onState
   * @param {string} language of the voice, where there are several
   * @param {SpeechSynthesis} [synthesis]
   */
  constructor(onState, language, synthesis = globalThis.speechSynthesis) {
    this.onState = onState;
    this.language = language;
    this.synthesis = synthesis;
  }

  /** Whether the browser has a voice. @returns {Promise<boolean>} */
  async isAvailable() {
    const synthesis = this.synthesis;
    if (!synthesis || typeof SpeechSynthesisUtterance === 'undefined') return false;
    if (synthesis.getVoices().length > 0) return true;
    // They are loaded in the background.
    return new Promise((resolve) => {
      const look = () => {
        clearTimeout(timer);
        synthesis.removeEventListener?.('voiceschanged', look);
        resolve(synthesis.getVoices().length > 0);
      };
      const timer = setTimeout(look, VOICES_TIMEOUT_MS);
      synthesis.addEventListener?.('voiceschanged', look);
    });
  }

  /** Adds words; complete sentences are spoken. @param {string} text */
  add(text) {
    if (this.#isClosed) return;
    const { sentences, rest } = split(this.#rest + text);
    this.#rest = rest;
    for (const sentence of sentences) this.#enqueue(sentence);
  }

  /** Nothing more follows for now: what is left is a sentence too. */
  end() {
    const rest = this.#rest;
    this.#rest = '';
    this.#enqueue(rest);
  }

  /** Stops in the middle of a word, until it is resumed or flushed. */
  pause() {
    if (this.#current) this.synthesis.pause?.();
  }

  resume() {
    this.synthesis.resume?.();
  }

  /** Stops at once and drops everything that waits. */
  flush() {
    const was = this.#current !== null || this.#queue.length > 0;
    this.#queue = [];
    this.#rest = '';
    this.#forget();
    if (!was) return;
    this.synthesis.cancel();
    // One that was paused would keep the next sentence waiting.
    this.resume();
    this.onState('empty');
  }

  close() {
    this.#isClosed = true;
    this.#queue = [];
    this.#rest = '';
    if (this.#current) this.synthesis.cancel();
    this.#forget();
  }

  /** @param {string} sentence */
  #enqueue(sentence) {
    const words = speakable(sentence);
    if (!words || this.#isClosed || this.#queue.length >= MAX_QUEUED_SENTENCES) return;
    this.#queue.push(words);
    if (!this.#current) this.#next();
  }

  #next() {
    const words = this.#queue.shift();
    if (words === undefined) return this.onState('empty');
    const utterance = new SpeechSynthesisUtterance(words);
    utterance.lang = this.language;
    this.#current = utterance;
    const over = () => {
      // The end of an utterance that was cancelled comes late.
      if (this.#current !== utterance) return;
      this.#forget();
      this.#next();
    };
    utterance.onend = over;
    utterance.onerror = over;
    this.#timer = setTimeout(over, MAX_START_MS + words.length * MAX_MS_PER_CHAR);
    this.onState('playing');
    this.synthesis.speak(utterance);
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#current = null;
  }
}

/** @param {string} text @returns {{ sentences: string[], rest: string }} */
function split(text) {
  const sentences = [];
  let rest = text;
  for (;;) {
    // An end of a sentence is followed by white space: “3.5” and “kb.md” go on.
    const end = rest.search(/[.!?…:;]["”’)\]]*\s|\n/);
    const length = end >= 0 ? end + (/^\S*\s/.exec(rest.slice(end))?.[0].length ?? 1) : cut(rest);
    if (length === 0) return { sentences, rest };
    sentences.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
}

/** Where a text without an end is cut, or 0 while it is short. @param {string} text */
function cut(text) {
  if (text.length <= MAX_SENTENCE_CHARS) return 0;
  const space = text.lastIndexOf(' ', MAX_SENTENCE_CHARS);
  return space > 0 ? space + 1 : MAX_SENTENCE_CHARS;
}

/** What is read out: no ids of records, no marks of Markdown. @param {string} text */
function speakable(text) {
  const words = text
    .replace(/\[[^\]\s]*[/#:][^\]\s]*\]/g, ' ')
    .replace(/[*_`#>|]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /[\p{L}\p{N}]/u.test(words) ? words : '';
}
