'use client';

import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { type FormEvent, useMemo, useState } from 'react';
import type { Message } from '@/lib/message';
import { keepToken, tokenHeaders } from '@/lib/session';
import { MessageView } from './message-view';
import { VoiceButton } from './voice-button';

export function Chat({ server }: { server: string }) {
  const [text, setText] = useState('');
  const transport = useMemo(
    () => new DefaultChatTransport<Message>({ api: `${server}/api/chat`, headers: tokenHeaders }),
    [server],
  );
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useChat<Message>({
    transport,
    onFinish: ({ message }) => keepToken(message.metadata?.sessionToken),
    // Once every question is answered, the decision goes to the server, which runs the call.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === 'submitted' || status === 'streaming';

  function submit(event: FormEvent) {
    event.preventDefault();
    if (isBusy) return void stop();
    if (text.trim()) void sendMessage({ text });
    setText('');
  }

  return (
    <main>
      <h1>Ask the agent</h1>
      <div className="messages" role="log">
        {messages.map((message) => (
          <MessageView
            key={message.id}
            message={message}
            isBusy={isBusy}
            decide={(id, approved) => void addToolApprovalResponse({ id, approved })}
          />
        ))}
      </div>
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Your message" placeholder="Who designed the Fram?" />
        <button type="submit">{isBusy ? 'Stop' : 'Send'}</button>
        <VoiceButton server={server} />
      </form>
    </main>
  );
}
