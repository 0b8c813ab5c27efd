// Long enough to be watched and to be cancelled.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ to: number }>} call */
export async function execute({ args, context }) {
  for (let counted = 1; counted <= args.to; counted++) {
    context.progress(`${counted} of ${args.to}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    context.signal.throwIfAborted();
  }
  return { ok: true, data: { counted: args.to } };
}
