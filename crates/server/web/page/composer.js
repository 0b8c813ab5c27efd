// <qd-composer>: the message box. Enter sends, Shift+Enter starts a line.

import { fill, find } from '../shared/dom.js';
import { icon } from '../shared/icons.js';

export class Composer extends HTMLElement {
  #isBusy = false;
  #isCall = false;

  connectedCallback() {
    const form = find('form', HTMLFormElement, this);
    const text = this.#text;
    fill(this.#voice, icon('microphone'));
    this.#draw();
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    text.addEventListener('keydown', (event) => {
      // Enter may end an input method's composition.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#isBusy) this.#send();
    });
    text.addEventListener('input', () => this.#draw());
    text.addEventListener('paste', (event) => {
      const pasted = event.clipboardData?.getData('text/plain').length ?? 0;
      const kept = text.value.length - (text.selectionEnd - text.selectionStart);
      if (kept + pasted > text.maxLength) this.dispatchEvent(new CustomEvent('too-long', { bubbles: true }));
    });
    this.#voice.addEventListener('click', () => this.dispatchEvent(new CustomEvent('voice', { bubbles: true })));
  }

  /** @param {boolean} isBusy @param {boolean} isCall */
  update(isBusy, isCall) {
    this.#isBusy = isBusy && !isCall;
    this.#isCall = isCall;
    this.#draw();
  }

  /** @param {boolean} mayCall */
  offerVoice(mayCall) {
    this.#voice.dataset.off = String(!mayCall);
    this.#draw();
  }

  focus() {
    this.#text.focus();
  }

  get #text() {
    return find('textarea', HTMLTextAreaElement, this);
  }

  get #voice() {
    return find('[data-testid=voice-start]', HTMLButtonElement, this);
  }

  #send() {
    if (this.#isBusy) return void this.dispatchEvent(new CustomEvent('stop', { bubbles: true }));
    const text = this.#text.value.trim();
    if (!text) return;
    this.#text.value = '';
    this.#draw();
    this.dispatchEvent(new CustomEvent('send', { bubbles: true, detail: text }));
  }

  #draw() {
    const send = find('[data-testid=send]', HTMLButtonElement, this);
    const text = this.#text;
    const label = this.#isBusy ? 'Stop' : 'Send';
    if (send.getAttribute('aria-label') !== label || !send.firstChild) {
      fill(send, icon(this.#isBusy ? 'stop' : 'send'));
      send.setAttribute('aria-label', label);
      send.title = label;
    }
    send.disabled = !this.#isBusy && !text.value.trim();
    this.#voice.hidden = this.#isCall || this.#voice.dataset.off === 'true';
    text.placeholder = this.#isCall ? 'Type into the call' : 'Ask something';
    resize(text);
  }
}

/** Fits the height to the content. @param {HTMLTextAreaElement} text */
function resize(text) {
  text.style.height = 'auto';
  text.style.height = `${Math.min(text.scrollHeight, 200)}px`;
}

customElements.define('qd-composer', Composer);
