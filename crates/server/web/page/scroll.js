// Keeps the end in view for whoever reads the end, and leaves everybody else where they are.

/** How far from the end one may be and still be said to read it. */
const NEAR = 48;
/** From how far on a way back to the end is offered: less is seen without it, and it would only cover something. */
const FAR = 120;
/** What is left free above a question. */
const ABOVE = 8;

export class Follow {
  #isAtEnd = true;
  /** Whether the reader has opened something, and reads that until they move. */
  #isHeld = false;
  /** Where the reader was. */
  #top = 0;

  /** @param {HTMLElement} scroller @param {HTMLElement} content @param {HTMLButtonElement} down */
  constructor(scroller, content, down) {
    this.scroller = scroller;
    this.content = content;
    this.down = down;
    scroller.addEventListener('scroll', () => this.#moved(), { passive: true });
    content.addEventListener('click', ({ target }) => {
      if (target instanceof Element && target.closest('summary')) this.#hold();
    });
    new ResizeObserver(() => this.#grown()).observe(content);
    new ResizeObserver(() => this.#grown()).observe(scroller);
    down.addEventListener('click', () => this.end());
  }

  /** Goes to the end, and stays there. */
  end() {
    this.#isHeld = false;
    this.#isAtEnd = true;
    this.#grown();
  }

  /** Goes on by most of what is seen. @param {-1 | 1} direction */
  turn(direction) {
    this.scroller.scrollBy({ top: direction * this.scroller.clientHeight * 0.85 });
  }

  /** What opens under the reader's hand stays there, and so does what is above it. */
  #hold() {
    this.#isHeld = true;
    this.#isAtEnd = false;
  }

  /** How much there is below what is seen. */
  get #left() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #moved() {
    const { scrollTop } = this.scroller;
    this.#isHeld &&= scrollTop === this.#top;
    // Only whoever goes up leaves the end: what grows below leaves nobody.
    if (scrollTop < this.#top) this.#isAtEnd = false;
    this.#look();
  }

  #look() {
    if (this.#left < NEAR && !this.#isHeld) this.#isAtEnd = true;
    this.#top = this.scroller.scrollTop;
    this.down.hidden = this.#left < FAR;
  }

  #grown() {
    if (!this.#isAtEnd) return this.#look();
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#showQuestion();
    this.down.hidden = this.#left < FAR;
  }

  /** A question is read from its beginning, also where it is higher than the screen. */
  #showQuestion() {
    const question = this.content.lastElementChild?.querySelector('.confirm[data-state=asked]');
    if (!question) return;
    const hidden = this.scroller.getBoundingClientRect().top + ABOVE - question.getBoundingClientRect().top;
    if (hidden > 0) this.scroller.scrollTop -= hidden;
  }
}
