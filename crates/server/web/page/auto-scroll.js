// Keeps the end in view while the reader is at the end, and otherwise leaves the scroll position alone.

/** Closer to the end than this counts as being at the end. */
const NEAR_END_PX = 48;
/** Farther than this shows the button that jumps to the end. */
const FAR_FROM_END_PX = 120;
const QUESTION_MARGIN_PX = 8;

export class AutoScroll {
  #isAtEnd = true;
  /** Whether the reader has unfolded something; cleared when they scroll. */
  #isHeld = false;
  /** The last scroll position. */
  #top = 0;

  /** @param {HTMLElement} scroller @param {HTMLElement} content @param {HTMLButtonElement} down */
  constructor(scroller, content, down) {
    this.scroller = scroller;
    this.content = content;
    this.down = down;
    scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    content.addEventListener('click', ({ target }) => {
      if (target instanceof Element && target.closest('summary')) this.#hold();
    });
    new ResizeObserver(() => this.#onResize()).observe(content);
    new ResizeObserver(() => this.#onResize()).observe(scroller);
    down.addEventListener('click', () => this.toEnd());
  }

  /** Jumps to the end and follows it. */
  toEnd() {
    this.#isHeld = false;
    this.#isAtEnd = true;
    this.#onResize();
  }

  /** Scrolls by most of a screen. @param {-1 | 1} direction */
  page(direction) {
    this.scroller.scrollBy({ top: direction * this.scroller.clientHeight * 0.85 });
  }

  /** Stops following, so that what the reader unfolds stays in place. */
  #hold() {
    this.#isHeld = true;
    this.#isAtEnd = false;
  }

  /** Pixels below the visible part. */
  get #left() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #onScroll() {
    const { scrollTop } = this.scroller;
    this.#isHeld &&= scrollTop === this.#top;
    // Only scrolling up leaves the end; content that grows below does not.
    if (scrollTop < this.#top) this.#isAtEnd = false;
    this.#update();
  }

  #update() {
    if (this.#left < NEAR_END_PX && !this.#isHeld) this.#isAtEnd = true;
    this.#top = this.scroller.scrollTop;
    this.down.hidden = this.#left < FAR_FROM_END_PX;
  }

  #onResize() {
    if (!this.#isAtEnd) return this.#update();
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#showQuestion();
    this.down.hidden = this.#left < FAR_FROM_END_PX;
  }

  /** Shows an open question from its top, even if it is taller than the screen. */
  #showQuestion() {
    const question = this.content.lastElementChild?.querySelector('.confirm[data-state=asked]');
    if (!question) return;
    const hidden = this.scroller.getBoundingClientRect().top + QUESTION_MARGIN_PX - question.getBoundingClientRect().top;
    if (hidden > 0) this.scroller.scrollTop -= hidden;
  }
}
