// An error that the model is told about.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />
import { ErrorType, ToolError } from 'quarterdeck';

export function execute() {
  throw new ToolError(ErrorType.PERMANENT, 'This tool intentionally returns an error for testing.');
}
