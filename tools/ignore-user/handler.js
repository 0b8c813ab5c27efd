// Blocks the user for a while.
//
// The message and the block become real together, when the call is recorded, or not at all. The message is asked for
// first, because a user who is gone is not blocked without notice.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { ErrorType, IntentType, ToolError } from 'quarterdeck';

/** @param {import('quarterdeck').Call<{ duration_seconds: number, farewell_message: string }>} call */
export async function execute({ args, context }) {
  const { duration_seconds: seconds, farewell_message: farewell } = args;
  if (!context.session.isActive) {
    throw new ToolError(ErrorType.SESSION_INACTIVE, 'The conversation is over already.', {
      suggestion: 'Do nothing: the user has left.',
    });
  }
  const until = (/** @type {number} */ lasting) => new Date(Date.now() + lasting * 1000).toISOString();

  await context.messaging.send({
    type: 'timeout',
    durationSeconds: seconds,
    timeoutUntil: until(seconds),
    farewellMessage: farewell,
  });
  // The site may allow less than was asked for; the message above is corrected by the server.
  const { seconds: duration } = await context.client.block(seconds, farewell);
  context.audit.log('user_ignored', { durationSeconds: duration, timeoutUntil: until(duration) });

  return {
    ok: true,
    data: { duration, timeout_until: until(duration), farewell_message: farewell },
    intents: [
      { type: IntentType.END_VOICE_SESSION, after: 'farewell_spoken' },
      { type: IntentType.SUPPRESS_AUDIO, value: true },
    ],
  };
}
