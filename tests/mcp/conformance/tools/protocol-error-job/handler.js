// A task that ends with a fault in the handler itself.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export async function execute() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  throw new TypeError('This handler is broken.');
}
