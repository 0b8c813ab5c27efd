// The chat of `<quarterdeck-chat>`: the page's own modules in the shadow root of another site's page.

import { getJson } from '../shared/api.js';
import { find, setText } from '../shared/dom.js';
import { AutoScroll } from '../page/auto-scroll.js';
import { Chat } from '../page/chat.js';
import { Composer } from '../page/composer.js';
import { Messages } from '../page/messages.js';
import { Records } from '../page/records.js';
import { panel } from './panel.js';
import { applySettings } from './settings.js';
import { styleSheet } from './styles.js';

/** Below this width the chat takes the whole screen, and the page behind it cannot be reached. */
const SMALL_SCREEN = '(max-width: 36rem)';

export class Widget {
  #chat = new Chat();
  #records = new Records();
  #panel = panel();
  #isLoaded = false;
  #hasRatings = false;
  /** Whether the model of calls understands and has speech. */
  #abilities = { hears: true, speaks: true };
  /** Loaded with the first call. @type {import('../page/voice/call-controller.js').CallController | null} */
  #calls = null;
  /** Loaded with the first record that is opened. @type {import('../page/record-panel.js').RecordPanel | null} */
  #record = null;
  /** Loaded with the first call in the background. @type {import('../page/tasks.js').Tasks | null} */
  #tasks = null;
  #noticeTimer = 0;

  /** @param {HTMLElement & { open: boolean }} host @param {ShadowRoot} root @param {string} styles */
  constructor(host, root, styles) {
    this.host = host;
    root.adoptedStyleSheets.push(styleSheet(styles));
    root.prepend(this.#panel);
    const list = this.#find('.messages', HTMLElement);
    this.list = list;
    this.composer = this.#find('qd-composer', Composer);
    this.messages = new Messages(list, this.#find('.announce', HTMLElement), this.#records);
    this.autoScroll = new AutoScroll(this.#find('.scroll', HTMLElement), list, this.#find('.down', HTMLButtonElement));
    this.#listenToChat();
    this.#listenToUser();
    matchMedia(SMALL_SCREEN).addEventListener('change', () => this.#reopen());
  }

  show() {
    if (this.#panel.open) return;
    const isSmall = matchMedia(SMALL_SCREEN).matches;
    this.#panel.toggleAttribute('data-modal', isSmall);
    if (isSmall) this.#panel.showModal();
    else this.#panel.show();
    if (!this.composer.hidden) this.composer.focus();
    if (!this.#isLoaded) void this.#load();
    this.#isLoaded = true;
  }

  hide() {
    const hadFocus = this.#panel.matches(':focus-within');
    this.#panel.close();
    if (hadFocus) find('.bubble', HTMLButtonElement, this.#panel.parentNode ?? document).focus();
  }

  /** A modal dialog becomes another kind only by being opened again. */
  #reopen() {
    if (!this.#panel.open) return;
    this.#panel.close();
    this.show();
  }

  #listenToChat() {
    const { messages } = this;
    const chat = this.#chat;
    on(chat, 'message', (message) => {
      messages.show(message, chat.messages);
      void this.#watchTasks();
      this.#draw();
    });
    on(chat, 'reset', () => {
      this.#record?.close();
      messages.reset(chat.messages);
      void this.#watchTasks();
      this.#draw();
    });
    on(chat, 'state', () => {
      this.#draw();
      if (!chat.isBusy) void this.#offerRatings();
    });
    on(chat, 'blocked', (block) => void this.#showBlock(block));
    on(chat, 'lost', () => this.#notify('Connection lost. Reconnecting…'));
    on(chat, 'back', () => this.#notify('Reconnected.', 5_000));
  }

  /** @param {{ sessionId?: string, pendingRequest?: string }} offer */
  async #call(offer) {
    try {
      const { startCalls } = await import('./voice.js');
      this.#calls ??= this.#listenToCalls(startCalls(this.#find('.calls', HTMLElement), this.#chat, this.composer));
    } catch {
      return this.#notify('Calls cannot be loaded. Use the chat, or try again.', 8_000);
    }
    await this.#calls.call(offer);
  }

  /** @param {import('../page/voice/call-controller.js').CallController} calls */
  #listenToCalls(calls) {
    calls.abilities = this.#abilities;
    on(calls, 'state', () => this.#draw());
    on(calls, 'notice', (text) => this.#notify(text, 8_000));
    on(calls, 'blocked', (block) => void this.#showBlock(block));
    return calls;
  }

  #listenToUser() {
    const { composer } = this;
    const chat = this.#chat;
    const root = this.#panel;
    on(root, 'send', (text) => this.#send(text));
    on(root, 'stop', () => chat.stop());
    on(root, 'voice', () => void this.#call({}));
    on(root, 'accept', (offer) => void this.#call(offer));
    on(root, 'cancel-task', (tool) => void this.#tasks?.cancel(tool));
    on(root, 'retry', () => void chat.retry());
    on(root, 'rate', ({ message, ...feedback }) => void this.#rate(message, feedback));
    on(root, 'notify', (text) => this.#notify(text, 4_000));
    on(root, 'cite', (id) => void this.#openRecord(id));
    on(root, 'leave', () => composer.focus());
    on(root, 'expire', ({ tool }) => chat.expire(tool));
    on(root, 'too-long', () => this.#notify('The text is too long; its end was cut.', 12_000));
    on(root, 'over', () => {
      composer.hidden = false;
      this.#notify('You are no longer blocked.', 5_000);
      void chat.load();
    });
    on(root, 'decide', ({ tool, isApproved }) => {
      const message = chat.messages.find((message) => message.parts.includes(tool));
      if (message?.isSpoken) this.#calls?.decide(tool, isApproved);
      else if (message) void chat.decide(message, tool, isApproved);
    });
    on(this.#find('.new', HTMLButtonElement), 'click', () => {
      this.#calls?.discard();
      chat.startNew();
      composer.focus();
    });
    on(this.#find('.close', HTMLButtonElement), 'click', () => (this.host.open = false));
    root.addEventListener('keydown', (event) => this.#onKey(event), { capture: true });
    // The page has shortcuts of its own, which what is typed here must not trigger.
    for (const name of ['keydown', 'keyup', 'keypress']) root.addEventListener(name, (event) => event.stopPropagation());
    // The browser's own way to leave a modal dialog, such as a phone's back gesture.
    on(root, 'cancel', (_, event) => {
      event.preventDefault();
      this.host.open = false;
    });
  }

  /** Escape closes what is on top: a record, then the agent's speech, then the chat. @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key !== 'Escape' || event.isComposing) return;
    event.preventDefault();
    if (this.#record && !this.#record.hidden) this.#record.close();
    else if (this.#panel.querySelector('qd-call[data-state=speaking]:not([hidden])')) this.#calls?.interrupt();
    else this.host.open = false;
  }

  /** @param {string} text */
  #send(text) {
    this.autoScroll.toEnd();
    if (this.#calls?.isOn) this.#calls.sendText(text);
    else if (!this.#chat.isBusy) void this.#chat.send(text);
  }

  #draw() {
    const chat = this.#chat;
    this.#find('.welcome', HTMLElement).hidden = chat.messages.length > 0;
    this.composer.update(chat.isBusy, this.#calls?.isOn === true);
  }

  async #load() {
    this.#draw();
    const [me, settings] = await Promise.all(['/api/me', '/api/page'].map((path) => getJson(path).catch(() => null)));
    const mayCall = me?.voice != null && settings?.voice !== false;
    this.composer.offerVoice(mayCall);
    this.#abilities = me?.voice ?? this.#abilities;
    if (settings) applySettings(this.host, this.#panel, settings);
    if (me?.block) void this.#showBlock(me.block);
    if (!me) this.#notify('The chat cannot reach its server. Your message is sent when it can.');
    await this.#chat.load();
    this.#draw();
  }

  /** @param {import('../page/model.js').Block} known the reason may be missing, then the server is asked */
  async #showBlock(known) {
    this.composer.hidden = true;
    const me = known.message ? null : await getJson('/api/me').catch(() => null);
    const block = new (await parts()).BlockView();
    this.#find('.block-place', HTMLElement).replaceChildren(block);
    block.show(me?.block ?? known);
  }

  /** @param {string} id */
  async #openRecord(id) {
    if (!this.#record) {
      const { RecordPanel } = await parts();
      this.#record = new RecordPanel();
      this.#find('.record', HTMLElement).replaceChildren(this.#record);
    }
    this.#record.open(id, this.#records);
  }

  /** Answers can be rated once there is one. */
  async #offerRatings() {
    const { messages } = this.#chat;
    if (this.#hasRatings || !messages.some(({ role }) => role === 'assistant')) return;
    this.#hasRatings = true;
    await parts();
    for (const message of messages) this.messages.show(message, messages);
  }

  /** @param {import('../page/model.js').Message} message @param {{ rating: 'up' | 'down' | 'none', comment?: string }} feedback */
  async #rate(message, feedback) {
    const problem = await (await parts()).rateAnswer(this.#chat, message, feedback);
    if (problem) this.#notify(problem, 8_000);
  }

  async #watchTasks() {
    const isBackground = (/** @type {import('../page/model.js').Part} */ part) => part.kind === 'tool' && part.state === 'background';
    if (!this.#chat.messages.some((message) => message.parts.some(isBackground))) return;
    const { Tasks } = await parts();
    this.#tasks ??= new Tasks(this.#chat);
    this.#tasks.watch();
  }

  /** @param {string} text @param {number} [milliseconds] how long it is shown */
  #notify(text, milliseconds) {
    clearTimeout(this.#noticeTimer);
    const notice = this.#find('.notice', HTMLElement);
    setText(notice, text);
    if (milliseconds) this.#noticeTimer = setTimeout(() => setText(notice, ''), milliseconds);
  }

  /** @template {Element} T @param {string} selector @param {new () => T} kind */
  #find(selector, kind) {
    return find(selector, kind, this.#panel);
  }
}

/** What is needed only at times. */
async function parts() {
  return (await import('./at-times.js')).parts;
}

/** @param {EventTarget} target @param {string} name @param {(detail: any, event: Event) => void} then */
function on(target, name, then) {
  target.addEventListener(name, (event) => then(event instanceof CustomEvent ? event.detail : null, event));
}
