// What a failure of the provider means for the call.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { ErrorType, ToolError } from 'quarterdeck';

const TELL = 'Tell the user that images cannot be generated at the moment.';

/** @param {any} error */
export function failure(error) {
  const message = `No image: ${error.message}.`;
  // Only OUTCOME_UNKNOWN may have changed anything: the provider may have made the image, and charged for it.
  switch (error.code) {
    case 'REFUSED':
      return new ToolError(ErrorType.PERMANENT, message, {
        partialSideEffects: false,
        suggestion:
          'Do not send the same prompt again. If its content was refused, offer the user another one, drafted with image_draft_prompt.',
      });
    case 'AUTH_ERROR':
      return new ToolError(ErrorType.AUTH, message, {
        partialSideEffects: false,
        suggestion: `${TELL} The operator must check the key of the image provider.`,
      });
    case 'RATE_LIMIT':
      return new ToolError(ErrorType.RATE_LIMIT, message, {
        retryable: true,
        partialSideEffects: false,
        retryAfter: error.retryAfter,
        suggestion: 'Offer to try again later.',
      });
    case 'NOT_AVAILABLE':
      return new ToolError(ErrorType.TRANSIENT, message, { retryable: true, partialSideEffects: false, suggestion: TELL });
    case 'OUTCOME_UNKNOWN':
      return new ToolError(ErrorType.TRANSIENT, message, {
        retryable: false,
        partialSideEffects: true,
        suggestion: 'Do not try again by yourself: say that an image may have been charged, and ask whether to try once more.',
      });
    default:
      return error;
  }
}
