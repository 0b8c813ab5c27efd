'use client';

import { useEffect, useRef, useState } from 'react';
import { Call, type CallEvent } from '@/lib/call';
import type { Confirmation } from '@/lib/message';
import { Approval } from './approval';

/** Starts and ends a call, shows what is said, and asks for approval as the chat does. */
export function VoiceButton({ server }: { server: string }) {
  const call = useRef<Call | null>(null);
  const [state, setState] = useState('off');
  const [lines, setLines] = useState<{ role: string; text: string }[]>([]);
  const [question, setQuestion] = useState<Confirmation | null>(null);

  useEffect(() => () => call.current?.hangUp(), []);

  function onEvent(event: CallEvent) {
    if (event.type === 'state') setState(event.state);
    if (event.type === 'question') setQuestion(event.question);
    if (event.type === 'line') setLines((lines) => [...lines.slice(-5), event.line]);
    if (event.type === 'state' && event.state === 'off') setQuestion(null);
  }

  function toggle() {
    if (state !== 'off') return call.current?.hangUp();
    setLines([]);
    call.current = new Call(server, onEvent);
    void call.current.begin();
  }

  return (
    <>
      <button type="button" aria-pressed={state !== 'off'} onClick={toggle}>
        {state === 'off' ? 'Talk' : 'Hang up'}
      </button>
      {(state !== 'off' || lines.length > 0) && (
        <div className="voice" role="status" data-state={state}>
          <strong>{state}</strong>
          {lines.map(({ role, text }, place) => (
            <p key={place} data-role={role}>
              {text}
            </p>
          ))}
        </div>
      )}
      {question && (
        <Approval
          question={question}
          decide={(approved) => {
            call.current?.decide(question.token, approved);
            setQuestion(null);
          }}
        />
      )}
    </>
  );
}
