// Three notes on the way to the answer.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call} call */
export async function execute({ context }) {
  for (const share of [0, 50, 100]) {
    context.progress(`${share} of 100`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { ok: true, data: { done: true } };
}
