// Blocks the user for a while.
//
// The message and the block become real together, when the call is recorded, or not at all. The message is asked for
// first, because a user who is gone is not blocked without notice.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { ErrorType, IntentType, ToolError } from 'quarterdeck';

/** @param {import('quarterdeck').Call<{ duration_seconds: number, farewell_message: string }>} call */
export async function execute({ args, context }) {
  const { farewell_message: farewell } = args;
  // A block lasts whole seconds; a part of one counts as a whole.
  const seconds = Math.ceil(args.duration_seconds);
  if (!context.session.isActive) {
    throw new ToolError(ErrorType.SESSION_INACTIVE, 'The conversation is over already.', {
      suggestion: 'Do nothing: the user has left.',
    });
  }

  await context.messaging.send({
    type: 'timeout',
    durationSeconds: seconds,
    timeoutUntil: Date.now() + seconds * 1000,
    farewellMessage: farewell,
  });
  // The site may allow less than was asked for; the message above is corrected by the server.
  const { seconds: duration, until: timeoutUntil } = await context.client.block(seconds, farewell);
  context.audit.log('user_timeout', { durationSeconds: duration, timeoutUntil });

  return {
    ok: true,
    data: { timeoutUntil, duration },
    // In voice the farewell is spoken first: the server has the model say it, and sees to it that it is heard.
    intents: [
      { type: IntentType.END_VOICE_SESSION, after: 'farewell_spoken' },
      { type: IntentType.SUPPRESS_AUDIO, value: true },
    ],
  };
}
