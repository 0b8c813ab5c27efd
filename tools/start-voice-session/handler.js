// Asks the user's page to open a voice session. The server keeps the pending request under the id that is sent.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { ErrorType, ToolError } from 'quarterdeck';

/** @param {import('quarterdeck').Call<{ pending_request: string }>} call */
export async function execute({ args, context }) {
  const pendingRequest = args.pending_request || null;
  if (context.voice.isActive()) {
    throw new ToolError(ErrorType.SESSION_ACTIVE, 'A voice session of this user is open already.', {
      suggestion: 'Tell them to go on in the open call.',
    });
  }
  const sessionId = crypto.randomUUID();
  await context.messaging.send({ type: 'voice_session_start', sessionId, pendingRequest });
  context.audit.log('voice_session_issued', { sessionId });
  return { ok: true, data: { session_id: sessionId, pending_request: pendingRequest } };
}
