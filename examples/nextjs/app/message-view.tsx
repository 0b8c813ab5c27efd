import type { Confirmation, Message } from '@/lib/message';
import { Approval } from './approval';

type Props = { message: Message; isBusy: boolean; decide: (id: string, approved: boolean) => void };

/** One message: its text, its tool calls, and the questions that some of them wait for. */
export function MessageView({ message, isBusy, decide }: Props) {
  const questions = new Map<string, Confirmation>();
  for (const part of message.parts) {
    if (part.type === 'data-confirmation') questions.set(part.data.callId, part.data);
  }
  return (
    <article data-role={message.role}>
      {message.parts.map((part, place) => {
        if (part.type === 'text') return <p key={place}>{part.text}</p>;
        // Quarterdeck's tools are not known at build time, so all of them are dynamic.
        if (part.type !== 'dynamic-tool') return null;
        const question = questions.get(part.toolCallId);
        return (
          <section key={place} className="call" data-state={part.state}>
            <code>{part.toolName}</code> <span>{labels[part.state] ?? part.state}</span>
            {part.state === 'approval-requested' && question && (
              // While an answer is streamed, the AI SDK would lose the decision.
              <Approval question={question} isDisabled={isBusy} decide={(approved) => decide(part.approval.id, approved)} />
            )}
          </section>
        );
      })}
    </article>
  );
}

const labels: Record<string, string> = {
  'input-streaming': 'running',
  'input-available': 'running',
  'approval-requested': 'needs your approval',
  'approval-responded': 'decided',
  'output-available': 'done',
  'output-error': 'refused',
  'output-denied': 'denied',
};
