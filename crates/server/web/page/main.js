// Entry point of the page: wires the chat, calls and views.

import { getJson } from '../shared/api.js';
import { fill, find, setText } from '../shared/dom.js';
import { picture } from '../shared/icons.js';
import { blockLift } from './block-lift.js';
import { BlockView } from './block-view.js';
import { deleteConversation, rateAnswer } from './chat-requests.js';
import { Chat } from './chat.js';
import { Composer } from './composer.js';
import './message-actions.js';
import { Messages } from './messages.js';
import { textOf } from './model.js';
import { ModelTroubleView } from './model-trouble.js';
import { addRecall } from './recall.js';
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
/** The list, loaded when it is first opened. @type {import('./conversations.js').Conversations | null} */
let conversations = null;
const notice = find('#notice', HTMLElement);
const autoScroll = new AutoScroll(scroller, list, find('#down', HTMLButtonElement));
const messages = new Messages(list, find('#announce', HTMLElement), records);
const tasks = new Tasks(chat);
const trouble = new ModelTroubleView(find('#model-trouble', HTMLElement), () => getJson('/api/me'));
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
}

/**
 * The user is blocked. The server ends a call after its farewell.
 *
 * @param {import('./model.js').Block} why
 */
function showBlock(why) {
  block.show(why);
  if (why.lift) block.querySelector('section')?.append(blockLift(why.lift));
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
on(chat, 'state', () => {
  draw();
  if (!chat.isBusy) trouble.afterTurn(chat.messages);
});
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
on(document, 'rate', ({ message, ...feedback }) => void rateAnswer(chat, message, feedback).then(showProblem));
on(document, 'notify', (text) => showNotice(text, 4_000));
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
  chat.startNew();
  conversations?.close();
  composer.focus();
});
const history = find('#history', HTMLButtonElement);
fill(history, picture('M4 6h16M4 12h16M4 18h10'));
on(history, 'click', () => void toggleConversations());
on(document, 'open-conversation', (id) => {
  conversations?.close();
  calls.discard();
  autoScroll.toEnd();
  void chat.open(id);
  composer.focus();
});
on(document, 'delete-conversation', (id) => {
  if (id === chat.id) calls.discard();
  void deleteConversation(chat, id).then(showProblem);
});
addRecall(find('#composer', HTMLTextAreaElement), () =>
  chat.messages.filter(({ role }) => role === 'user').map(textOf).filter(Boolean),
);

/** @param {string | null} problem */
function showProblem(problem) {
  if (problem) showNotice(problem, 8_000);
}

async function toggleConversations() {
  try {
    const { Conversations } = await import('./conversations.js');
    conversations ??= find('qd-conversations', Conversations);
  } catch {
    return showNotice('The list could not be loaded. Try again.', 8_000);
  }
  if (conversations.hidden) await conversations.open(chat.id);
  else conversations.close();
}

/** Shows a block, and then what only the server knows of it. @param {import('./model.js').Block} known */
async function loadBlock(known) {
  if (known.message) showBlock(known);
  const me = await getJson('/api/me').catch(() => null);
  if (me?.block) showBlock(me.block);
  else if (!known.message) showBlock(known);
}

async function init() {
  draw();
  const me = await getJson('/api/me').catch(() => null);
  if (me) {
    showProvider(find('#provider', HTMLButtonElement), find('#provider-more', HTMLElement), me);
    composer.offerVoice(me.voice !== null);
    if (me.voice) calls.abilities = me.voice;
    if (me.block) showBlock(me.block);
    if (me.watch) void import('./watch-corner.js').then(({ showWatchCorner }) => showWatchCorner(document.body));
    trouble.show(me.modelTrouble);
  }
  if (matchMedia('(pointer: fine)').matches && composer.hidden === false) composer.focus();
  showSuggestions(find('#suggestions', HTMLElement), me?.voice !== null, send);
  await chat.load();
  draw();
}

void init();
