// Entry point of the page: wires the chat, calls and views.

import { getJson } from '../shared/api.js';
import { find, setText } from '../shared/dom.js';
import { BlockView } from './block-view.js';
import { Chat } from './chat.js';
import { Composer } from './composer.js';
import { ConfirmCard } from './confirm-card.js';
import { Messages } from './messages.js';
import { RecordPanel } from './record-panel.js';
import { Records } from './records.js';
import { Tasks } from './tasks.js';
import { AutoScroll } from './auto-scroll.js';
import { CallController } from './voice/call-controller.js';
import { showSuggestions } from './welcome.js';
import { showProvider } from './provider-info.js';

const chat = new Chat();
const records = new Records();
const scroller = find('#scroll', HTMLElement);
const list = find('#messages', HTMLElement);
const composer = find('qd-composer', Composer);
const block = find('qd-block', BlockView);
const panel = find('qd-record', RecordPanel);
const notice = find('#notice', HTMLElement);
const autoScroll = new AutoScroll(scroller, list, find('#down', HTMLButtonElement));
const messages = new Messages(list, find('#announce', HTMLElement), records);
const tasks = new Tasks(chat);
const calls = new CallController(find('qd-call', HTMLElement), chat, composer);

/** @param {string} text */
function send(text) {
  autoScroll.toEnd();
  if (calls.isOn) calls.sendText(text);
  else if (!chat.isBusy) void chat.send(text);
}

function draw() {
  find('#welcome', HTMLElement).hidden = chat.messages.length > 0;
  composer.update(chat.isBusy, calls.isOn);
  for (const card of list.querySelectorAll('.call > qd-confirm')) {
    if (card instanceof ConfirmCard) card.wait(chat.isBusy && !card.closest('.spoken'));
  }
}

/**
 * The user is blocked. The server ends a call after its farewell.
 *
 * @param {import('./model.js').Block} why
 */
function showBlock(why) {
  block.show(why);
  composer.hidden = true;
}

let noticeTimer = 0;
/** @param {string} text @param {number} [milliseconds] how long it is shown */
function showNotice(text, milliseconds) {
  clearTimeout(noticeTimer);
  setText(notice, text);
  if (milliseconds) noticeTimer = setTimeout(() => setText(notice, ''), milliseconds);
}

/** @param {EventTarget} target @param {string} name @param {(detail: any, event: Event) => void} then */
function on(target, name, then) {
  target.addEventListener(name, (event) => then(event instanceof CustomEvent ? event.detail : null, event));
}

on(chat, 'message', (message) => {
  messages.show(message, chat.messages);
  tasks.watch();
  draw();
});
on(chat, 'reset', () => {
  panel.close();
  messages.reset(chat.messages);
  tasks.watch();
  draw();
});
on(chat, 'state', draw);
on(chat, 'blocked', (detail) => void loadBlock(detail));
on(chat, 'lost', () => showNotice('Connection lost. Reconnecting…'));
on(chat, 'back', () => showNotice('Reconnected.', 5_000));
on(calls, 'state', draw);
on(calls, 'notice', (text) => showNotice(text, 8_000));
on(calls, 'blocked', (detail) => void loadBlock(detail));

on(document, 'send', send);
on(document, 'stop', () => chat.stop());
on(document, 'voice', () => void calls.call({}));
on(document, 'accept', (offer) => void calls.call(offer));
on(document, 'cancel-task', (tool) => void tasks.cancel(tool));
on(document, 'retry', () => void chat.retry());
on(document, 'cite', (id) => panel.open(id, records));
on(document, 'leave', () => composer.focus());
on(document, 'over', () => {
  composer.hidden = false;
  showNotice('You are no longer blocked.', 5_000);
  void chat.load();
});
on(document, 'decide', ({ tool, isApproved }) => {
  const message = chat.messages.find((message) => message.parts.includes(tool));
  if (message?.isSpoken) calls.decide(tool, isApproved);
  else if (message) void chat.decide(message, tool, isApproved);
});
on(document, 'too-long', () => showNotice('The text is too long; its end was cut.', 12_000));
on(document, 'expire', ({ tool }) => chat.expire(tool));
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') calls.interrupt();
  // A short message cannot be paged, so these keys page the conversation.
  const { target, key } = event;
  const isShort = target instanceof HTMLTextAreaElement && target.scrollHeight <= target.clientHeight;
  if (!isShort || (key !== 'PageUp' && key !== 'PageDown')) return;
  event.preventDefault();
  autoScroll.page(key === 'PageUp' ? -1 : 1);
});
on(find('#new', HTMLButtonElement), 'click', () => {
  calls.discard();
  void chat.startNew();
  composer.focus();
});

/** Loads the reason of a block when only its end is known. @param {import('./model.js').Block} known */
async function loadBlock(known) {
  const me = known.message ? null : await getJson('/api/me').catch(() => null);
  showBlock(me?.block ?? known);
}

async function init() {
  draw();
  const me = await getJson('/api/me').catch(() => null);
  if (me) {
    showProvider(find('#provider', HTMLButtonElement), find('#provider-more', HTMLElement), me);
    composer.offerVoice(me.voice !== null);
    calls.isTyped = me.voice?.isRehearsal === true;
    if (me.block) showBlock(me.block);
  }
  if (matchMedia('(pointer: fine)').matches && composer.hidden === false) composer.focus();
  showSuggestions(find('#suggestions', HTMLElement), me?.voice !== null, send);
  await chat.load();
  draw();
}

void init();
