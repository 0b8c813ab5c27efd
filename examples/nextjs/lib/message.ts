import type { UIMessage } from 'ai';

/** What a call wants to do, in words, and with the exact arguments. */
export type Confirmation = { callId: string; token: string; preview: string; args: unknown; expires: number };

/** The AI SDK's message with what Quarterdeck adds to it. */
export type Message = UIMessage<{ sessionToken?: string }, { confirmation: Confirmation }>;
