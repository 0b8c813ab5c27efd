// A call: the microphone as 16-bit samples at 16 kHz over a WebSocket, and the agent's voice back at 24 kHz.

import type { Confirmation } from './message';
import { keepToken, tokenHeaders } from './session';

export type CallEvent =
  | { type: 'state'; state: 'connecting' | 'listening' | 'speaking' | 'off' }
  | { type: 'line'; line: { role: string; text: string } }
  | { type: 'question'; question: Confirmation };

export class Call {
  #socket: WebSocket | null = null;
  #stream: MediaStream | null = null;
  #contexts: AudioContext[] = [];
  #speaker: AudioWorkletNode | null = null;
  /** Whether the server's audio is speech. The built-in simulator has none, so there the browser speaks. */
  #isSpeech = true;

  constructor(
    private server: string,
    private emit: (event: CallEvent) => void,
  ) {}

  /** Call it from a click, or browsers keep the loudspeaker silent. */
  async begin() {
    this.emit({ type: 'state', state: 'connecting' });
    try {
      await Promise.all([this.#openSpeaker(), this.#openMicrophone()]);
      await this.#connect();
    } catch (error) {
      this.emit({ type: 'line', line: { role: 'error', text: String(error) } });
      this.hangUp();
    }
  }

  decide(token: string, approve: boolean) {
    this.#send({ type: 'confirm', token, approve });
  }

  hangUp() {
    this.#send({ type: 'stop' });
    speechSynthesis.cancel();
    this.#socket?.close(1000);
    this.#socket = null;
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    for (const context of this.#contexts.splice(0)) void context.close();
    this.emit({ type: 'state', state: 'off' });
  }

  /** A WebSocket has no headers, so the session token is traded for a ticket, which is good for one call. */
  async #connect() {
    const response = await fetch(`${this.server}/api/voice/ticket`, { method: 'POST', headers: tokenHeaders() });
    if (!response.ok) throw new Error(await response.text());
    const { ticket, sessionToken } = await response.json();
    keepToken(sessionToken);
    const socket = new WebSocket(`${this.server.replace(/^http/, 'ws')}/voice?ticket=${encodeURIComponent(ticket)}`);
    socket.binaryType = 'arraybuffer';
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    socket.onopen = () => this.#send({ type: 'start', timeZone, locale: navigator.language });
    socket.onmessage = ({ data }) => this.#onMessage(data);
    socket.onclose = () => socket === this.#socket && this.hangUp();
    this.#socket = socket;
  }

  #onMessage(data: ArrayBuffer | string) {
    if (typeof data !== 'string') return this.#isSpeech && this.#speaker?.port.postMessage(data, [data]);
    const message = JSON.parse(data);
    switch (message.type) {
      case 'ready':
        this.#isSpeech = message.speaks !== false;
        return this.emit({ type: 'state', state: 'listening' });
      case 'interrupted':
        speechSynthesis.cancel();
        return this.#speaker?.port.postMessage('flush');
      case 'transcript':
        if (!message.final) return;
        if (message.role !== 'user' && !this.#isSpeech) this.#speak(message.text);
        return this.emit({ type: 'line', line: { role: message.role, text: message.text } });
      case 'confirmation_request':
        return this.emit({ type: 'question', question: message });
      case 'error':
        return this.emit({ type: 'line', line: { role: 'error', text: message.error?.message ?? 'Failed.' } });
    }
  }

  #speak(text: string) {
    const words = new SpeechSynthesisUtterance(text);
    words.onend = () => this.#send({ type: 'playback', state: 'drained' });
    speechSynthesis.speak(words);
  }

  async #openMicrophone() {
    this.#stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true } });
    const context = await this.#context(16_000);
    const node = new AudioWorkletNode(context, 'microphone', { numberOfOutputs: 0, channelCount: 1 });
    node.port.onmessage = ({ data }) => this.#socket?.readyState === WebSocket.OPEN && this.#socket.send(data);
    context.createMediaStreamSource(this.#stream).connect(node);
  }

  async #openSpeaker() {
    const context = await this.#context(24_000);
    this.#speaker = new AudioWorkletNode(context, 'speaker', { numberOfInputs: 0, outputChannelCount: [1] });
    this.#speaker.connect(context.destination);
    this.#speaker.port.onmessage = ({ data: isPlaying }) => {
      if (!this.#socket) return;
      // The server counts the time that the user is silent from here.
      if (!isPlaying) this.#send({ type: 'playback', state: 'drained' });
      this.emit({ type: 'state', state: isPlaying ? 'speaking' : 'listening' });
    };
  }

  async #context(sampleRate: number) {
    const context = new AudioContext({ sampleRate });
    this.#contexts.push(context);
    await context.audioWorklet.addModule('/audio-worklets.js');
    return context;
  }

  #send(message: object) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}
