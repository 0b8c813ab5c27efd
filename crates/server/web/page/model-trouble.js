// Says that the model fails, since when and why, and looks again until it answers.

import { setText } from '../shared/dom.js';
import { modelReason } from '../shared/model-reasons.js';

/** How often the server is asked while the model fails. */
const CHECK_INTERVAL_MS = 15_000;

export class ModelTroubleView {
  #timer = 0;

  /**
   * @param {HTMLElement} place where it is said; hidden while there is nothing to say
   * @param {() => Promise<Api.Me | null>} loadMe
   */
  constructor(place, loadMe) {
    this.place = place;
    this.loadMe = loadMe;
  }

  /** @param {Api.ModelTrouble | null | undefined} trouble */
  show(trouble) {
    clearTimeout(this.#timer);
    this.place.hidden = !trouble;
    setText(this.place, trouble ? describeTrouble(trouble) : '');
    if (trouble) this.#timer = setTimeout(() => void this.check(), CHECK_INTERVAL_MS);
  }

  /** After an answer: whether the model has begun to fail, or answers again. @param {import('./model.js').Message[]} messages */
  afterTurn(messages) {
    const failed = messages.at(-1)?.parts.some((part) => part.kind === 'error' || (part.kind === 'note' && part.isFallback));
    if (failed || !this.place.hidden) void this.check();
  }

  async check() {
    const me = await this.loadMe().catch(() => null);
    // A server that does not answer is another trouble, which is said elsewhere.
    if (me) this.show(me.modelTrouble);
    else if (!this.place.hidden) this.#timer = setTimeout(() => void this.check(), CHECK_INTERVAL_MS);
  }
}

/** @param {Api.ModelTrouble} trouble */
export function describeTrouble({ model, since, kind, fallback }) {
  const instead = fallback ? ` ${fallback} answers instead.` : ' Answers may fail until it is back.';
  return `The model ${model} has been failing since ${sinceTime(since)}: ${modelReason(kind)}.${instead}`;
}

/** A time of day, with the date unless it is today. @param {string} moment */
function sinceTime(moment) {
  const at = new Date(moment);
  const isToday = at.toDateString() === new Date().toDateString();
  const time = { hour: '2-digit', minute: '2-digit' };
  const options = /** @type {Intl.DateTimeFormatOptions} */ (isToday ? time : { day: 'numeric', month: 'short', ...time });
  return at.toLocaleString(undefined, options);
}
