// A call with the agent: microphone, WebSocket and loudspeaker.
//
// Events: `state`, `message` (detail: a caption that was added or changed), `notice`, `blocked`, `over`.

import { lasting } from '../../shared/storage.js';
import { explain } from '../explain.js';
import { Loudspeaker, Microphone } from './audio.js';
import { BrowserVoice } from './browser-voice.js';
import { Captions } from './captions.js';
import { WebSocketLink } from './websocket-link.js';

/** @typedef {import('../model.js').ToolPart} ToolPart */
/** @typedef {'connecting' | 'reconnecting' | 'listening' | 'reading' | 'thinking' | 'looking' | 'speaking' | 'muted'} State */
/** @typedef {{ hears: boolean, speaks: boolean }} VoiceAbilities whether the model understands speech, and whether its audio is speech */

/** How long to wait for the server's farewell. */
const FAREWELL_TIMEOUT_MS = 2_500;

/** @type {Record<number, string>} */
const closeNotices = {
  1011: 'The voice model cannot be reached. Use the chat, or try again.',
  1013: 'The server has no capacity for another call. Try again later.',
  4001: 'The call continues in another window.',
  4002: 'The call ended because nothing was said.',
};

export class Call extends EventTarget {
  #link = new WebSocketLink(() => this.#startMessage());
  #microphone = new Microphone();
  #loudspeaker = new Loudspeaker();
  /** Speaks where the server does not. @type {BrowserVoice | null} */
  #browserVoice = null;
  /** Whether the server's audio is speech. @type {boolean | null} */
  #speaks = null;
  /** Whether anything speaks; null until that is known. @type {boolean | null} */
  hasVoice = null;
  #captions = new Captions((message) => this.#emit('message', message));
  /** @type {{ sessionId?: string, resumeToken?: string, pendingRequest?: string }} */
  #start;
  #isReady = false;
  #isLost = false;
  #isPlaying = false;
  #isThinking = false;
  /** Whether the agent's turn is open; later results do not show it as thinking. */
  #isTurnOpen = false;
  /** Whether arriving audio belongs to an interrupted response. */
  #isDiscardingAudio = false;
  #isOver = false;
  #lastError = '';
  isMuted = false;
  /** Whether the microphone is muted while the agent speaks, for rooms where it would hear itself. */
  isHalfDuplex = lasting.get('quarterdeck.half-duplex') === 'yes';
  provider = '';
  /** Whether there is a microphone that the agent could be heard by. */
  hasMicrophone = false;

  /**
   * @param {{ sessionId?: string, pendingRequest?: string }} start
   * @param {VoiceAbilities} abilities
   */
  constructor(start, { hears, speaks }) {
    super();
    this.#start = start;
    this.hears = hears;
    this.#setSpeaks(speaks);
    this.#link.addEventListener('message', (event) => this.#onMessage(/** @type {CustomEvent} */ (event).detail));
    this.#link.addEventListener('audio', (event) => this.#onAudio(/** @type {CustomEvent} */ (event).detail));
    this.#link.addEventListener('lost', () => this.#onLost());
    this.#link.addEventListener('closed', (event) => this.#onClosed(/** @type {CustomEvent} */ (event).detail));
  }

  /** @returns {State} */
  get state() {
    if (this.#isLost) return 'reconnecting';
    if (!this.#isReady) return 'connecting';
    if (this.#isPlaying) return 'speaking';
    if (this.#captions.isToolRunning) return 'looking';
    if (this.#isThinking) return 'thinking';
    if (!this.hasMicrophone) return 'reading';
    return this.isMuted ? 'muted' : 'listening';
  }

  /** Whether the browser speaks the agent's words. */
  get isBrowserSpeaking() {
    return this.#browserVoice !== null;
  }

  /** Opens the audio devices and connects. */
  async begin() {
    try {
      // Opened together: some browsers mute a loudspeaker that is opened long after the click.
      const speaker = this.#loudspeaker.open(
        (state) => this.#onPlayback(state),
        (playedMs) => this.#link.send({ type: 'playback', state: 'playing', playedMs }),
      );
      await Promise.all([this.#openMicrophone(), speaker]);
    } catch (error) {
      return this.#finish({ notice: microphoneError(error) });
    }
    if (this.#isOver) return this.#release();
    void this.#link.open();
  }

  async #openMicrophone() {
    // The browser's own voice is not filtered out of what its microphone hears. A model that would not understand it
    // anyway would be interrupted by itself.
    if (!this.hears && this.#browserVoice) return;
    try {
      await this.#microphone.open((frame) => this.#sendFrame(frame));
      this.hasMicrophone = true;
    } catch (error) {
      // A model that does not hear needs no microphone.
      if (this.hears) throw error;
      this.#emit('notice', 'No microphone. Type into the call.');
    }
  }

  /** @param {boolean} speaks whether the server's audio is speech */
  #setSpeaks(speaks) {
    if (speaks === this.#speaks) return;
    this.#speaks = speaks;
    this.#browserVoice?.close();
    this.#browserVoice = null;
    this.hasVoice = speaks || null;
    if (speaks) return;
    const voice = new BrowserVoice((state) => this.#onPlayback(state), document.documentElement.lang || 'en');
    this.#browserVoice = voice;
    void voice.isAvailable().then((isAvailable) => {
      if (this.#browserVoice !== voice) return;
      this.hasVoice = isAvailable;
      if (!isAvailable) voice.flush();
      this.#emit('state');
    });
  }

  stop() {
    if (this.#isOver) return;
    this.#stopPlayback();
    this.#link.send({ type: 'stop' });
    if (!this.#isReady) return this.#finish({});
    setTimeout(() => this.#finish({}), FAREWELL_TIMEOUT_MS);
  }

  /** Ends the call without waiting for the farewell. */
  drop() {
    this.stop();
    this.#finish({});
  }

  /** @param {string} text */
  sendText(text) {
    this.#stopPlayback();
    this.#link.send({ type: 'text', text });
    this.#setTurnOpen(true);
    this.#emit('state');
  }

  /** @param {ToolPart} tool @param {boolean} isApproved */
  decide(tool, isApproved) {
    const isSent = this.#link.send({ type: 'confirm', token: tool.question?.token, approve: isApproved });
    // The decision was not sent, so the question is shown again.
    if (isSent) tool.isApproved = isApproved;
    else this.#captions.repeatQuestion(tool);
  }

  /** Stops the agent's speech and tells the server. */
  interrupt() {
    if (!this.#isPlaying) return;
    this.#stopPlayback();
    this.#isDiscardingAudio = true;
    this.#link.send({ type: 'interrupt' });
  }

  /** @param {boolean} isMuted */
  mute(isMuted) {
    this.isMuted = isMuted;
    this.#emit('state');
  }

  /** @param {boolean} isHalfDuplex */
  setHalfDuplex(isHalfDuplex) {
    this.isHalfDuplex = isHalfDuplex;
    lasting.set('quarterdeck.half-duplex', isHalfDuplex ? 'yes' : 'no');
  }

  /** The level, from 0 to 1, of the agent while it speaks and otherwise of the microphone. */
  level() {
    // A browser does not tell how loud its voice is.
    if (this.#isPlaying) return this.#browserVoice ? 0.4 : this.#loudspeaker.level();
    return this.#isSending ? this.#microphone.level() : 0;
  }

  get #isSending() {
    return this.hasMicrophone && this.#isReady && !this.isMuted && !(this.isHalfDuplex && this.#isPlaying);
  }

  #startMessage() {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    return { ...this.#start, timeZone, locale: navigator.language };
  }

  /** @param {ArrayBuffer} frame */
  #sendFrame(frame) {
    if (this.#isSending) this.#link.sendAudio(frame);
  }

  /** @param {ArrayBuffer} samples */
  #onAudio(samples) {
    // Audio that is not speech only keeps time.
    if (this.#isDiscardingAudio || this.#isOver || this.#browserVoice) return;
    this.#isThinking = false;
    this.#loudspeaker.play(samples);
  }

  /** @param {'playing' | 'empty'} state */
  #onPlayback(state) {
    this.#isPlaying = state === 'playing';
    if (state === 'empty') this.#link.send({ type: 'playback', state: 'drained' });
    this.#emit('state');
  }

  #stopPlayback() {
    this.#loudspeaker.flush();
    this.#browserVoice?.flush();
    this.#isPlaying = false;
  }

  /** Speaks what stands in the transcript, where nothing else does. @param {string} words */
  #speak(words) {
    if (!this.#browserVoice || this.#isDiscardingAudio) return;
    this.#isThinking = false;
    if (this.hasVoice !== false) this.#browserVoice.add(words);
  }

  /** @param {boolean} isOpen */
  #setTurnOpen(isOpen) {
    this.#isTurnOpen = isOpen;
    this.#isThinking = isOpen;
  }

  /** @param {Api.VoiceMessage} message */
  #onMessage(message) {
    const captions = this.#captions;
    switch (message.type) {
      case 'ready':
        this.#ready(message);
        break;
      case 'transcript':
        if (message.role === 'user' && !message.late) {
          this.#isDiscardingAudio = false;
          this.#setTurnOpen(true);
        }
        captions.addTranscript(message.role === 'user' ? 'user' : 'assistant', message.text, message.final === true);
        if (message.role === 'assistant' && message.final) this.#speak(message.text);
        break;
      case 'tool_call':
        this.#isTurnOpen = true;
        this.#browserVoice?.end();
        captions.addCall(message);
        break;
      case 'tool_result':
        captions.addResult(message);
        this.#isThinking = this.#isTurnOpen;
        break;
      case 'confirmation_request':
        captions.addQuestion(message);
        break;
      case 'progress':
        captions.setProgress(message.callId, message.text);
        break;
      case 'partial':
        captions.setPartial(message.callId, message.data);
        break;
      case 'pause':
        this.#loudspeaker.pause();
        this.#browserVoice?.pause();
        break;
      case 'resume':
        this.#loudspeaker.resume();
        this.#browserVoice?.resume();
        break;
      case 'interrupted':
        this.#stopPlayback();
        this.#isDiscardingAudio = false;
        this.#setTurnOpen(false);
        captions.end();
        break;
      case 'turn_complete':
        this.#browserVoice?.end();
        // Where nothing speaks, what was said has been read.
        if (this.hasVoice === false) this.#onPlayback('empty');
        this.#setTurnOpen(false);
        captions.end();
        break;
      case 'timeout':
        this.#emit('blocked', { timeoutUntil: message.timeoutUntil, message: message.farewellMessage ?? '' });
        break;
      case 'session_end':
        this.#finish({ text: message.textResponse || unlessSpoken(message.closingMessage, captions), notice: 'The call has ended.' });
        break;
      case 'going_away':
        this.#emit('notice', 'The server is restarting. The call continues when it is back.');
        break;
      case 'error':
        this.#lastError = message.error?.message ?? explain(message.error?.type) ?? '';
        this.#emit('notice', message.error?.message ?? 'An error occurred.');
        break;
    }
    this.#emit('state');
  }

  /** @param {Extract<Api.VoiceMessage, { type: 'ready' }>} ready */
  #ready({ sessionId, resumeToken, resumed, provider, speaks }) {
    // A server that does not say sends speech.
    this.#setSpeaks(speaks !== false);
    // The request was handed over; a later connection only resumes.
    this.#start = { sessionId, resumeToken };
    this.provider = provider;
    this.#isReady = true;
    this.#link.markReady();
    if (this.#isLost) this.#emit('notice', resumed ? 'Call resumed.' : 'The call was lost; this is a new one.');
    this.#isLost = false;
  }

  #onLost() {
    // Nothing is lost before the call is ready.
    if (this.#isReady && !this.#isLost) this.#emit('notice', 'Connection lost. Reconnecting…');
    this.#isLost = this.#isReady;
    this.#isThinking = false;
    this.#stopPlayback();
    this.#emit('state');
  }

  /** @param {{ code: number, hadOpened: boolean }} closed */
  #onClosed({ code, hadOpened }) {
    if (code === 1000) return this.#finish({ notice: 'The call has ended.' });
    const unknown = hadOpened ? 'The call was lost.' : 'The call could not be connected. Use the chat, or try again.';
    this.#finish({ notice: closeNotices[code] ?? (this.#lastError || unknown) });
  }

  /** @param {{ text?: string, notice?: string }} end */
  #finish(end) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#captions.abandonCalls();
    this.#link.close();
    this.#release();
    this.#emit('over', end);
  }

  #release() {
    this.#microphone.close();
    this.#loudspeaker.close();
    this.#browserVoice?.close();
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** The closing message, unless it was spoken. @param {string | null} words @param {Captions} captions */
function unlessSpoken(words, captions) {
  return words && !captions.includes(words) ? words : '';
}

/** @param {unknown} error */
function microphoneError(error) {
  const name = error instanceof DOMException ? error.name : '';
  switch (name) {
    case 'NotAllowedError':
      return 'Microphone access is blocked. Allow it in the address bar and try again.';
    case 'NotFoundError':
      return 'No microphone was found. Connect one, or use the chat.';
    case 'SecurityError':
      return 'The microphone needs HTTPS or localhost.';
    default:
      return 'The microphone could not be opened. Another program may be using it.';
  }
}
