// @ts-check
// Puts a chat on a page of any site: `<script src="https://HOST/embed.js" async></script>`.
//
// It draws a button; the chat itself is fetched when the button is first used. Attributes of the script
// (`data-position`, `data-label`, `data-theme`, `data-open`) or of a `<quarterdeck-chat>` in the page, without `data-`,
// say where the button is, what it says, which colours it has and whether the chat begins open.

(() => {
  const NAME = 'quarterdeck-chat';
  if (customElements.get(NAME)) return;

  const script = document.currentScript ?? document.querySelector('script[src*="/embed.js"]');
  if (!(script instanceof HTMLScriptElement)) return;
  const files = new URL('/web/VERSION/embed/', script.src);
  const OPEN_KEY = `quarterdeck.open@${files.origin}`;

  const SHAPES = { closed: 'M5 5h14v10h-7l-5 4v-4H5z', open: 'M6 9l6 6 6-6' };
  const STYLES = `
    :host { all: initial; color-scheme: inherit; position: fixed; z-index: var(--quarterdeck-layer, 2147483000);
      right: var(--quarterdeck-offset, 20px); bottom: var(--quarterdeck-offset, 20px); }
    :host([position="bottom-left"]) { right: auto; left: var(--quarterdeck-offset, 20px); }
    :host([theme="light"]) { color-scheme: light; }
    :host([theme="dark"]) { color-scheme: dark; }
    :host([hidden]) { display: none; }
    .bubble { display: flex; align-items: center; gap: 10px; min-width: 56px; height: 56px; margin: 0; padding: 0 16px; border: 0;
      border-radius: 28px; cursor: pointer; font: 600 16px/1 var(--quarterdeck-font, system-ui, sans-serif);
      background: var(--quarterdeck-accent, light-dark(#0d5c6b, #74c6d3));
      color: var(--quarterdeck-accent-text, light-dark(#fff, #06252b)); box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
    .bubble:focus-visible { outline: 3px solid var(--quarterdeck-accent, light-dark(#0d5c6b, #74c6d3)); outline-offset: 3px; }
    .bubble[aria-busy="true"] svg { opacity: 0.4; }
    .bubble svg { width: 24px; height: 24px; fill: none; stroke: currentcolor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
    .failure { position: absolute; right: 0; bottom: 66px; width: max-content; max-width: 260px; margin: 0; padding: 10px 14px;
      border-radius: 10px; font: 14px/1.4 system-ui, sans-serif; background: light-dark(#17212b, #e7eef1); color: light-dark(#fff, #10171b); }
    :host([position="bottom-left"]) .failure { right: auto; left: 0; }
    .failure:empty { display: none; }
    @media print { :host { display: none; } }
  `;

  /** What this tab remembers; pages whose storage is blocked forget. */
  const remembered = {
    get isOpen() {
      try {
        return sessionStorage.getItem(OPEN_KEY) === 'yes';
      } catch {
        return false;
      }
    },
    set isOpen(isOpen) {
      try {
        sessionStorage.setItem(OPEN_KEY, isOpen ? 'yes' : 'no');
      } catch {}
    },
  };

  class QuarterdeckChat extends HTMLElement {
    static observedAttributes = ['open', 'label'];

    #root = this.attachShadow({ mode: 'open', delegatesFocus: false });
    #button = document.createElement('button');
    #shape = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    #label = document.createElement('span');
    #failure = document.createElement('p');
    /** @type {Promise<import('./widget.js').Widget> | null} */
    #widget = null;

    constructor() {
      super();
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLES);
      this.#root.adoptedStyleSheets = [sheet];
      const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      svg.setAttribute('viewBox', '0 0 24 24');
      svg.setAttribute('aria-hidden', 'true');
      svg.append(this.#shape);
      this.#button.type = 'button';
      this.#button.className = 'bubble';
      this.#button.setAttribute('part', 'button');
      this.#button.setAttribute('aria-haspopup', 'dialog');
      this.#button.dataset.testid = 'bubble';
      this.#button.append(svg, this.#label);
      this.#button.addEventListener('click', () => (this.open = !this.open));
      // A visitor who reaches for the button will press it.
      for (const name of ['pointerenter', 'focus']) {
        this.#button.addEventListener(name, () => void this.#load().catch(() => {}), { once: true });
      }
      this.#failure.className = 'failure';
      this.#failure.setAttribute('role', 'status');
      this.#root.append(this.#button, this.#failure);
    }

    /** Whether the chat is shown; the attribute of the same name. */
    get open() {
      return this.hasAttribute('open');
    }

    set open(isOpen) {
      this.toggleAttribute('open', isOpen);
    }

    connectedCallback() {
      if (remembered.isOpen && !matchMedia('(max-width: 36rem)').matches) this.open = true;
      this.#draw();
    }

    /** @param {string} name */
    attributeChangedCallback(name) {
      this.#draw();
      if (name === 'open') void this.#apply();
    }

    #draw() {
      const text = this.getAttribute('label') ?? '';
      this.#label.textContent = text;
      this.#label.hidden = !text;
      this.#shape.setAttribute('d', this.open ? SHAPES.open : SHAPES.closed);
      this.#button.setAttribute('aria-expanded', String(this.open));
      if (text) this.#button.removeAttribute('aria-label');
      else this.#button.setAttribute('aria-label', 'Chat');
    }

    async #apply() {
      remembered.isOpen = this.open;
      try {
        if (!this.open && !this.#widget) return;
        const widget = await this.#load();
        if (this.open) widget.show();
        else widget.hide();
      } catch {
        this.#failure.textContent = 'The chat cannot be loaded. Try again later.';
        this.open = false;
      }
    }

    #load() {
      this.#widget ??= this.#fetch().catch((error) => {
        this.#widget = null;
        throw error;
      });
      return this.#widget;
    }

    /** @returns {Promise<import('./widget.js').Widget>} */
    async #fetch() {
      this.#failure.textContent = '';
      this.#button.setAttribute('aria-busy', 'true');
      try {
        const [{ Widget }, styles] = await Promise.all([
          import(new URL('widget.bundle.js', files).href),
          fetch(new URL('widget.bundle.css', files)).then((response) => response.text()),
        ]);
        return new Widget(this, this.#root, styles);
      } finally {
        this.#button.removeAttribute('aria-busy');
      }
    }
  }

  customElements.define(NAME, QuarterdeckChat);

  const add = () => {
    if (document.querySelector(NAME)) return;
    const chat = document.createElement(NAME);
    for (const name of ['position', 'label', 'theme', 'open']) {
      const value = script.dataset[name];
      if (value !== undefined) chat.setAttribute(name, value);
    }
    document.body.append(chat);
  };
  // An async script may run before the page has a body, or before its own <quarterdeck-chat> is there.
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', add, { once: true });
  else add();
})();
