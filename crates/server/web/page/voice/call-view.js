// <qd-call>: the current call, with its state, level meter and controls.

import { fill, h, setText } from '../../shared/dom.js';
import { icon } from '../../shared/icons.js';

/** @typedef {import('./call.js').Call} Call */

/** @type {Record<import('./call.js').State, string>} */
const labels = {
  connecting: 'Connecting…',
  reconnecting: 'Connection lost, reconnecting…',
  listening: 'Listening',
  reading: 'Type to it',
  thinking: 'Thinking…',
  looking: 'Running a tool…',
  speaking: 'Speaking',
  muted: 'Muted',
};

export class CallView extends HTMLElement {
  #state = h('strong', { class: 'call-state', 'data-testid': 'voice-state', role: 'status' });
  #provider = h('span', { class: 'quiet', 'data-testid': 'voice-about' });
  #option = h('label', { class: 'call-option' });
  #mute = h('button', {
    type: 'button',
    class: 'round',
    'data-testid': 'voice-mute',
    'aria-pressed': 'false',
    'aria-label': 'Mute me',
    title: 'Mute me',
  });
  #interrupt = h(
    'button',
    {
      type: 'button',
      class: 'round',
      'data-testid': 'voice-interrupt',
      'aria-label': 'Stop speaking',
      title: 'Stop speaking',
    },
    icon('quiet'),
  );
  #stop = h(
    'button',
    { type: 'button', class: 'round danger', 'data-testid': 'voice-stop', 'aria-label': 'Hang up', title: 'Hang up' },
    icon('hangUp'),
  );
  #half = h('input', { type: 'checkbox', id: 'half-duplex', 'data-testid': 'voice-half-duplex' });
  #orb = h('span', { class: 'orb', 'aria-hidden': 'true' });
  /** @type {Call | null} */
  #call = null;
  #frame = 0;

  connectedCallback() {
    fill(this.#option, this.#half, 'Mute me while the agent speaks');
    const text = h('div', { class: 'call-words' }, this.#state, this.#provider, this.#option);
    const buttons = h('div', { class: 'call-buttons' }, this.#interrupt, this.#mute, this.#stop);
    fill(this, h('section', { class: 'call-bar', 'aria-label': 'Call' }, this.#orb, text, buttons));
    this.#mute.addEventListener('click', () => this.#call?.mute(!this.#call.isMuted));
    this.#interrupt.addEventListener('click', () => this.#call?.interrupt());
    this.#half.addEventListener('change', () => this.#call?.setHalfDuplex(this.#half.checked));
    this.#stop.addEventListener('click', () => this.dispatchEvent(new CustomEvent('stop-call')));
  }

  /** @param {Call} call */
  show(call) {
    this.#call = call;
    this.#half.checked = call.isHalfDuplex;
    this.hidden = false;
    call.addEventListener('state', () => this.#draw(call));
    this.#draw(call);
    this.#stop.focus();
    this.#measure();
  }

  hide() {
    this.#call = null;
    cancelAnimationFrame(this.#frame);
    this.hidden = true;
  }

  /** @param {Call} call */
  #draw(call) {
    if (call !== this.#call) return;
    this.dataset.state = call.state;
    setText(this.#state, labels[call.state]);
    setText(this.#provider, about(call));
    this.#mute.hidden = !call.hasMicrophone;
    this.#option.hidden = !call.hasMicrophone;
    this.#interrupt.disabled = call.state !== 'speaking';
    const pressed = String(call.isMuted);
    if (this.#mute.getAttribute('aria-pressed') !== pressed || !this.#mute.firstChild) {
      this.#mute.setAttribute('aria-pressed', pressed);
      fill(this.#mute, icon(call.isMuted ? 'muted' : 'microphone'));
    }
  }

  #measure() {
    if (!this.#call) return;
    this.#orb.style.setProperty('--level', this.#call.level().toFixed(3));
    this.#frame = requestAnimationFrame(() => this.#measure());
  }
}

/** Who answers, and what it can do. @param {Call} call */
function about(call) {
  const abilities = [
    !call.hears && 'It does not hear yet: type to it.',
    call.isBrowserSpeaking && call.hasVoice && 'Your browser speaks its answers.',
    call.isBrowserSpeaking && call.hasVoice === false && 'This browser has no voice, so you can only read its answers.',
  ];
  return [call.provider && `${call.provider}.`, ...abilities].filter(Boolean).join(' ');
}

customElements.define('qd-call', CallView);
