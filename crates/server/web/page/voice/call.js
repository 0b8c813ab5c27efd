// A call with the agent: microphone, line and loudspeaker, and what is told on the way.
//
// Events: `state`, `message` (detail: a caption that is new or has changed), `notice`, `blocked`, `over`.

import { explain } from '../explain.js';
import { Loudspeaker, Microphone } from './audio.js';
import { Captions } from './captions.js';
import { Line } from './line.js';

/** @typedef {import('../model.js').ToolPart} ToolPart */
/** @typedef {'connecting' | 'reconnecting' | 'listening' | 'thinking' | 'looking' | 'speaking' | 'muted'} State */

/** How long the server has to say goodbye. */
const GOODBYE_MS = 2_500;

/** @type {Record<number, string>} */
const closings = {
  1011: 'The voice model cannot be reached at the moment. The chat works.',
  1013: 'There is no room for another call right now. Please try again in a while.',
  4001: 'The call goes on in another window.',
  4002: 'Nothing was said for a while, so the call has ended.',
};

export class Call extends EventTarget {
  #line = new Line(() => this.#opening());
  #microphone = new Microphone();
  #loudspeaker = new Loudspeaker();
  #captions = new Captions((message) => this.#tell('message', message));
  /** @type {{ sessionId?: string, resumeToken?: string, pendingRequest?: string }} */
  #start;
  #isReady = false;
  #isLost = false;
  #isPlaying = false;
  #isThinking = false;
  /** Whether the agent still owes something: what comes after that is late news. */
  #isTurnOpen = false;
  /** What still arrives belongs to an answer that nobody wants to hear. */
  #isDeaf = false;
  #isOver = false;
  #fault = '';
  isMuted = false;
  /** Whether the person is not sent while the agent speaks, for rooms in which it would hear itself. */
  isHalfDuplex = localStorage.getItem('quarterdeck.half-duplex') === 'yes';
  provider = '';

  /**
   * @param {{ sessionId?: string, pendingRequest?: string }} start
   * @param {boolean} isTyped whether the other end understands only what is typed
   */
  constructor(start, isTyped) {
    super();
    this.#start = start;
    this.isTyped = isTyped;
    this.#line.addEventListener('told', (event) => this.#told(/** @type {CustomEvent} */ (event).detail));
    this.#line.addEventListener('audio', (event) => this.#heard(/** @type {CustomEvent} */ (event).detail));
    this.#line.addEventListener('lost', () => this.#lost());
    this.#line.addEventListener('closed', (event) => this.#closed(/** @type {CustomEvent} */ (event).detail));
  }

  /** @returns {State} */
  get state() {
    if (this.#isLost) return 'reconnecting';
    if (!this.#isReady) return 'connecting';
    if (this.#isPlaying) return 'speaking';
    if (this.#captions.isLooking) return 'looking';
    if (this.#isThinking) return 'thinking';
    return this.isMuted ? 'muted' : 'listening';
  }

  /** Asks for the microphone and puts the call through. */
  async begin() {
    try {
      // Both at once: a loudspeaker that is opened long after the click stays silent in some browsers.
      const speaker = this.#loudspeaker.open((state) => this.#played(state));
      await Promise.all([this.#listen(), speaker]);
    } catch (error) {
      return this.#end({ notice: whyNoMicrophone(error) });
    }
    if (this.#isOver) return this.#release();
    this.#line.open();
  }

  async #listen() {
    try {
      await this.#microphone.open((frame) => this.#spoken(frame));
    } catch (error) {
      // Where only what is typed is understood, one can do without.
      if (!this.isTyped) throw error;
      this.isMuted = true;
      this.#tell('notice', 'There is no microphone. Write into the call.');
    }
  }

  /** Hangs up. */
  stop() {
    if (this.#isOver) return;
    this.#silence();
    this.#line.send({ type: 'stop' });
    if (!this.#isReady) return this.#end({});
    setTimeout(() => this.#end({}), GOODBYE_MS);
  }

  /** Hangs up without waiting for a goodbye. */
  drop() {
    this.stop();
    this.#end({});
  }

  /** Writes into the call. @param {string} text */
  say(text) {
    this.#silence();
    this.#line.send({ type: 'text', text });
    this.#turn(true);
    this.#tell('state');
  }

  /** @param {ToolPart} tool @param {boolean} isApproved */
  decide(tool, isApproved) {
    const isSent = this.#line.send({ type: 'confirm', token: tool.question?.token, approve: isApproved });
    // Nobody has heard it: the question is put again.
    if (isSent) tool.isApproved = isApproved;
    else this.#captions.askedAgain(tool);
  }

  /** Silences the agent, which is told so. */
  interrupt() {
    if (!this.#isPlaying) return;
    this.#silence();
    this.#isDeaf = true;
    this.#line.send({ type: 'interrupt' });
  }

  /** @param {boolean} isMuted */
  mute(isMuted) {
    this.isMuted = isMuted;
    this.#tell('state');
  }

  /** @param {boolean} isHalfDuplex */
  setHalfDuplex(isHalfDuplex) {
    this.isHalfDuplex = isHalfDuplex;
    localStorage.setItem('quarterdeck.half-duplex', isHalfDuplex ? 'yes' : 'no');
  }

  /** What is heard right now, from 0 to 1: the agent while it speaks, else the person. */
  level() {
    if (this.#isPlaying) return this.#loudspeaker.level();
    return this.#isSending ? this.#microphone.level() : 0;
  }

  get #isSending() {
    return this.#isReady && !this.isMuted && !(this.isHalfDuplex && this.#isPlaying);
  }

  #opening() {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    return { ...this.#start, timeZone, locale: navigator.language };
  }

  /** @param {ArrayBuffer} frame */
  #spoken(frame) {
    if (this.#isSending) this.#line.sendAudio(frame);
  }

  /** @param {ArrayBuffer} samples */
  #heard(samples) {
    if (this.#isDeaf || this.#isOver) return;
    this.#isThinking = false;
    this.#loudspeaker.play(samples);
  }

  /** @param {'playing' | 'empty'} state */
  #played(state) {
    this.#isPlaying = state === 'playing';
    if (state === 'empty') this.#line.send({ type: 'playback', state: 'drained' });
    this.#tell('state');
  }

  #silence() {
    this.#loudspeaker.flush();
    this.#isPlaying = false;
  }

  /** Somebody has asked for something, or it is done. @param {boolean} isOpen */
  #turn(isOpen) {
    this.#isTurnOpen = isOpen;
    this.#isThinking = isOpen;
  }

  /** @param {any} told */
  #told(told) {
    const captions = this.#captions;
    switch (told.type) {
      case 'ready':
        this.#ready(told);
        break;
      case 'transcript':
        if (told.role === 'user' && !told.late) {
          this.#isDeaf = false;
          this.#turn(true);
        }
        captions.said(told.role === 'user' ? 'user' : 'assistant', told.text, told.final === true);
        break;
      case 'tool_call':
        this.#isTurnOpen = true;
        captions.called(told);
        break;
      case 'tool_result':
        captions.result(told);
        this.#isThinking = this.#isTurnOpen;
        break;
      case 'confirmation_request':
        captions.asked(told);
        break;
      case 'progress':
        captions.progress(told.callId, told.text);
        break;
      case 'interrupted':
        this.#silence();
        this.#isDeaf = false;
        this.#turn(false);
        captions.end();
        break;
      case 'turn_complete':
        this.#turn(false);
        captions.end();
        break;
      case 'timeout':
        this.#tell('blocked', { timeoutUntil: told.timeoutUntil, message: told.farewellMessage ?? '' });
        break;
      case 'message':
        // What a tool says to the page is in its own words, and of those we know one.
        if (told.data?.type === 'timeout') this.#told(told.data);
        break;
      case 'session_end':
        this.#end({ text: told.textResponse || unsaid(told.closingMessage, captions), notice: 'The call has ended.' });
        break;
      case 'going_away':
        this.#tell('notice', 'The server is about to restart. The call goes on when it is back.');
        break;
      case 'error':
        this.#fault = told.error?.message ?? explain(told.error?.type) ?? '';
        this.#tell('notice', told.error?.message ?? 'Something went wrong.');
        break;
    }
    this.#tell('state');
  }

  /** @param {any} ready */
  #ready({ sessionId, resumeToken, resumed, provider }) {
    // What was handed over has been taken; a second connection only goes on.
    this.#start = { sessionId, resumeToken };
    this.provider = provider;
    this.#isReady = true;
    this.#line.settled();
    if (this.#isLost) this.#tell('notice', resumed ? 'The call goes on.' : 'The call was lost; this is a new one.');
    this.#isLost = false;
  }

  #lost() {
    // Before the call stood there is nothing to lose.
    if (this.#isReady && !this.#isLost) this.#tell('notice', 'The connection was lost. Calling again…');
    this.#isLost = this.#isReady;
    this.#isThinking = false;
    this.#silence();
    this.#tell('state');
  }

  /** @param {{ code: number, hadOpened: boolean }} closed */
  #closed({ code, hadOpened }) {
    if (code === 1000) return this.#end({ notice: 'The call has ended.' });
    const unknown = hadOpened ? 'The call was lost.' : 'The call could not be put through. The chat works.';
    this.#end({ notice: closings[code] ?? (this.#fault || unknown) });
  }

  /** @param {{ text?: string, notice?: string }} end */
  #end(end) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#captions.giveUp();
    this.#line.close();
    this.#release();
    this.#tell('over', end);
  }

  #release() {
    this.#microphone.close();
    this.#loudspeaker.close();
  }

  /** @param {string} name @param {unknown} [detail] */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** Words for the end, unless they were heard already. @param {string | null} words @param {Captions} captions */
function unsaid(words, captions) {
  return words && !captions.includes(words) ? words : '';
}

/** @param {unknown} error */
function whyNoMicrophone(error) {
  const name = error instanceof DOMException ? error.name : '';
  switch (name) {
    case 'NotAllowedError':
      return 'The browser does not let this page use the microphone. Allow it beside the address, and try again.';
    case 'NotFoundError':
      return 'No microphone was found. Connect one, or go on in writing.';
    case 'SecurityError':
      return 'Browsers give the microphone only to pages on HTTPS or localhost.';
    default:
      return 'The microphone could not be opened. Perhaps another program uses it.';
  }
}
