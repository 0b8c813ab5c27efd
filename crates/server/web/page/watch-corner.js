// The corner that tells what has become of saved files, for a server that follows its folders. Loaded only then.

import { fill, h } from '../shared/dom.js';

/** How long a save that went live is shown. */
const LIVE_MS = 4_000;
const RETRY_MS = 2_000;
// Narrow beside the conversation, wide once its details are open.
const STYLES = `
  qd-watch { position: fixed; left: .75rem; bottom: .75rem; z-index: 20; box-sizing: border-box;
    max-width: min(12.5rem, 70vw); max-height: 50vh; overflow: auto; padding: .5rem .7rem;
    border: 1px solid var(--line); border-radius: .5rem; background: var(--raised); color: var(--ink);
    font-size: .8rem; overflow-wrap: anywhere; box-shadow: var(--shadow); }
  qd-watch[hidden] { display: none; }
  qd-watch.failed { border-left: 4px solid var(--bad); }
  qd-watch:has(details[open]) { max-width: min(44rem, calc(100vw - 1.5rem)); }
  qd-watch p { margin: .25rem 0; }
  qd-watch pre { margin: .4rem 0 0; white-space: pre-wrap; font-size: .75rem; }
`;

/** @typedef {{ registry: string, reloads: number, changes: string[], problems: { source: string, text: string }[] }} Status */

class WatchCorner extends HTMLElement {
  #timer = 0;
  #reloads = -1;
  #hasFailed = false;

  connectedCallback() {
    this.setAttribute('role', 'status');
    this.setAttribute('data-testid', 'watch-corner');
    this.hidden = true;
    this.#follow();
  }

  /** Follows the server, also after it was restarted. */
  #follow() {
    const source = new EventSource('/api/watch');
    source.onmessage = (event) => this.#show(JSON.parse(event.data));
    source.onerror = () => {
      source.close();
      if (this.isConnected) setTimeout(() => this.#follow(), RETRY_MS);
    };
  }

  /** @param {Status} status */
  #show(status) {
    clearTimeout(this.#timer);
    const isFirst = this.#reloads < 0;
    const isNew = status.reloads !== this.#reloads;
    this.#reloads = status.reloads;
    if (status.problems.length > 0) {
      this.#hasFailed = true;
      const [first] = status.problems;
      const title = `Not live: ${first.source} of your last save. What was there before answers.`;
      this.#fill(true, title, firstLine(first.text), status.problems.map((problem) => problem.text));
    } else if (!isFirst && (isNew || this.#hasFailed)) {
      this.#hasFailed = false;
      this.#fill(false, `Live: registry ${status.registry}`, status.changes[0] ?? '', status.changes);
      this.#timer = setTimeout(() => (this.hidden = true), LIVE_MS);
    } else {
      this.hidden = true;
    }
  }

  /** @param {boolean} isFailed @param {string} title @param {string} line @param {string[]} texts */
  #fill(isFailed, title, line, texts) {
    this.classList.toggle('failed', isFailed);
    this.hidden = false;
    fill(
      this,
      h('strong', {}, title),
      line !== '' && h('p', {}, line),
      texts.length > 0 &&
        h('details', {}, h('summary', {}, 'Details'), h('pre', { tabindex: '0' }, texts.join('\n\n'))),
      h('button', { type: 'button', class: 'plain', onclick: () => (this.hidden = true) }, 'Hide'),
    );
  }
}

/** @param {string} text */
function firstLine(text) {
  return text.split('\n', 1)[0];
}

customElements.define('qd-watch', WatchCorner);

/** Shows the corner within an element of the page. @param {Element} root */
export function showWatchCorner(root) {
  const styles = new CSSStyleSheet();
  styles.replaceSync(STYLES);
  document.adoptedStyleSheets.push(styles);
  root.append(new WatchCorner());
}
