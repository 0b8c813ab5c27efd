// A task that ends with an error of the tool.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />
import { ErrorType, ToolError } from 'quarterdeck';

export async function execute() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  throw new ToolError(ErrorType.PERMANENT, 'This job always fails.');
}
