// The page: puts the conversation, the call and what shows them together.

import { getJson } from '../shared/api.js';
import { find, setText } from '../shared/dom.js';
import { BlockView } from './block-view.js';
import { Chat } from './chat.js';
import { Composer } from './composer.js';
import { ConfirmCard } from './confirm-card.js';
import { Messages } from './messages.js';
import { RecordPanel } from './record-panel.js';
import { Records } from './records.js';
import { Follow } from './scroll.js';
import { Telephone } from './voice/telephone.js';
import { suggest } from './welcome.js';
import { showWho } from './who.js';

const chat = new Chat();
const records = new Records();
const scroller = find('#scroll', HTMLElement);
const list = find('#messages', HTMLElement);
const composer = find('qd-composer', Composer);
const block = find('qd-block', BlockView);
const panel = find('qd-record', RecordPanel);
const notice = find('#notice', HTMLElement);
const follow = new Follow(scroller, list, find('#down', HTMLButtonElement));
const messages = new Messages(list, find('#announce', HTMLElement), records);
const telephone = new Telephone(find('qd-call', HTMLElement), chat, composer);

/** @param {string} text */
function say(text) {
  follow.end();
  if (telephone.isOn) telephone.say(text);
  else if (!chat.isBusy) void chat.say(text);
}

function draw() {
  find('#welcome', HTMLElement).hidden = chat.messages.length > 0;
  composer.update(chat.isBusy, telephone.isOn);
  for (const card of list.querySelectorAll('.call > qd-confirm')) {
    if (card instanceof ConfirmCard) card.wait(chat.isBusy && !card.closest('.spoken'));
  }
}

/**
 * The agent answers nothing for a while. A call is ended by the server, after its last words.
 *
 * @param {import('./model.js').Block} why
 */
function pause(why) {
  block.show(why);
  composer.hidden = true;
}

let noticeTimer = 0;
/** @param {string} text @param {number} [milliseconds] how long it stays */
function tell(text, milliseconds) {
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
  draw();
});
on(chat, 'reset', () => {
  panel.close();
  messages.reset(chat.messages);
  draw();
});
on(chat, 'state', draw);
on(chat, 'blocked', (detail) => void learnBlock(detail));
on(chat, 'lost', () => tell('The connection was lost. Trying again…'));
on(chat, 'back', () => tell('Connected again.', 5_000));
on(telephone, 'state', draw);
on(telephone, 'notice', (text) => tell(text, 8_000));
on(telephone, 'blocked', (detail) => void learnBlock(detail));

on(document, 'say', say);
on(document, 'stop', () => chat.stop());
on(document, 'voice', () => void telephone.call({}));
on(document, 'accept', (offer) => void telephone.call(offer));
on(document, 'again', () => void chat.again());
on(document, 'cite', (id) => panel.open(id, records));
on(document, 'leave', () => composer.focus());
on(document, 'over', () => {
  composer.hidden = false;
  tell('You can go on.', 5_000);
  void chat.load();
});
on(document, 'decide', ({ tool, isApproved }) => {
  const message = chat.messages.find((message) => message.parts.includes(tool));
  if (message?.isSpoken) telephone.decide(tool, isApproved);
  else if (message) void chat.decide(message, tool, isApproved);
});
on(document, 'too-long', () => tell('That is more than one message can hold. Its end was left out.', 12_000));
on(document, 'expire', ({ tool }) => chat.expire(tool));
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') telephone.interrupt();
  // There is nothing to page through in a message of a few lines, but there is in the conversation.
  const { target, key } = event;
  const isShort = target instanceof HTMLTextAreaElement && target.scrollHeight <= target.clientHeight;
  if (!isShort || (key !== 'PageUp' && key !== 'PageDown')) return;
  event.preventDefault();
  follow.turn(key === 'PageUp' ? -1 : 1);
});
on(find('#new', HTMLButtonElement), 'click', () => {
  telephone.forget();
  void chat.leave();
  composer.focus();
});

/** A refusal knows until when; the server knows why. @param {import('./model.js').Block} known */
async function learnBlock(known) {
  const me = known.message ? null : await getJson('/api/me').catch(() => null);
  pause(me?.block ?? known);
}

async function begin() {
  draw();
  const me = await getJson('/api/me').catch(() => null);
  if (me) {
    showWho(find('#who', HTMLButtonElement), find('#who-more', HTMLElement), me);
    composer.offerVoice(me.voice !== null);
    telephone.isTyped = me.voice?.isRehearsal === true;
    if (me.block) pause(me.block);
  }
  if (matchMedia('(pointer: fine)').matches && composer.hidden === false) composer.focus();
  suggest(find('#suggestions', HTMLElement), me?.voice !== null, say);
  await chat.load();
  draw();
}

void begin();
