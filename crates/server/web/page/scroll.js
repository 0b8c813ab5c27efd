// Keeps the end in view for whoever reads the end, and leaves everybody else where they are.

/** How far from the end one may be and still be said to read it. */
const NEAR = 48;

export class Follow {
  #isAtEnd = true;
  /** Where the reader was. */
  #top = 0;

  /** @param {HTMLElement} scroller @param {HTMLElement} content @param {HTMLButtonElement} down */
  constructor(scroller, content, down) {
    this.scroller = scroller;
    this.down = down;
    scroller.addEventListener('scroll', () => this.#look(), { passive: true });
    new ResizeObserver(() => this.#grown()).observe(content);
    new ResizeObserver(() => this.#grown()).observe(scroller);
    down.addEventListener('click', () => this.end());
  }

  /** Goes to the end, and stays there. */
  end() {
    this.#isAtEnd = true;
    this.#grown();
  }

  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    // Only whoever goes up leaves the end: what grows below leaves nobody.
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.#isAtEnd = true;
    else if (scrollTop < this.#top) this.#isAtEnd = false;
    this.#top = scrollTop;
    this.down.hidden = this.#isAtEnd;
  }

  #grown() {
    if (this.#isAtEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
    else this.#look();
  }
}
