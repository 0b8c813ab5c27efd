// Asks for the end of the call. The session ends once what is being said has been heard.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { IntentType } from 'quarterdeck';

/** @param {import('quarterdeck').Call<{ reason: string, closing_message?: string, text_response?: string }>} call */
export function execute({ args }) {
  return {
    ok: true,
    data: {
      reason: args.reason,
      finalMessage: args.closing_message ?? null,
      textResponse: args.text_response ?? null,
    },
    intents: [{ type: IntentType.END_VOICE_SESSION, after: 'current_turn' }],
  };
}
