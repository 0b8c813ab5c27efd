// Blocks the person on the other end for a while.
//
// The message and the block become real together, when the call is recorded, or not at all. The message is asked for
// first, because a person who is gone is not blocked behind their back.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { ErrorType, IntentType, ToolError } from 'quarterdeck';

/** @param {import('quarterdeck').Call<{ duration_seconds: number, farewell_message: string }>} call */
export async function execute({ args, context }) {
  const { duration_seconds: seconds, farewell_message: farewell } = args;
  if (!context.session.isActive) {
    throw new ToolError(ErrorType.SESSION_INACTIVE, 'The conversation is over already.', {
      suggestion: 'Do nothing: nobody is there to be ignored.',
    });
  }
  const until = new Date(Date.now() + seconds * 1000).toISOString();

  await context.messaging.send({
    type: 'timeout',
    durationSeconds: seconds,
    timeoutUntil: until,
    farewellMessage: farewell,
  });
  await context.client.block(seconds, farewell);
  context.audit.log('user_ignored', { durationSeconds: seconds, timeoutUntil: until });

  return {
    ok: true,
    data: { duration_seconds: seconds, timeout_until: until, farewell_message: farewell },
    intents: [
      { type: IntentType.END_VOICE_SESSION, after: 'farewell_spoken' },
      { type: IntentType.SUPPRESS_AUDIO, value: true },
    ],
  };
}
