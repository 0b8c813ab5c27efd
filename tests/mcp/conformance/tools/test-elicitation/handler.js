// The question to the user is the gate's. This runs when the user has approved.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ message: string }>} call */
export function execute({ args }) {
  return { ok: true, data: { said: args.message } };
}
