// What a page has: the AI SDK's chat and its transport, without React.

import { browser } from './deck.mjs';
import { load } from './packages.mjs';

export const sdk = await load('ai');

/** The state that `useChat` keeps in React, in a plain object. */
class PlainState {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = (message) => (this.messages = this.messages.concat(message));
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.with(index, message));
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends sdk.AbstractChat {}

/** A new visitor's chat with a server. */
export function visit(deck, options = {}) {
  const fetch = browser();
  const data = [];
  const chat = new Chat({
    state: new PlainState(),
    transport: new sdk.DefaultChatTransport({ api: `${deck.url}/api/chat`, fetch }),
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: (part) => data.push(part),
    ...options,
  });
  return {
    chat,
    data,
    fetch,
    /** Says something and waits for the whole answer. */
    async say(text) {
      await chat.sendMessage({ text });
      return chat.lastMessage;
    },
    /** The conversation as the server has it. */
    async session() {
      const response = await fetch(`${deck.url}/api/sessions/${chat.id}`);
      return response.json();
    },
  };
}

export function textOf(message) {
  return message.parts.filter((part) => part.type === 'text').map((part) => part.text).join('');
}

export function toolsOf(message) {
  return message.parts.filter((part) => part.type === 'dynamic-tool');
}
