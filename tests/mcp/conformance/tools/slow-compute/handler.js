// Waits as long as it was told to, or until the client cancels the task.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ seconds: number, label?: string }>} call */
export async function execute({ args, context }) {
  const end = Date.now() + args.seconds * 1_000;
  while (Date.now() < end && !context.signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  context.signal.throwIfAborted();
  return { ok: true, data: { seconds: args.seconds, label: args.label ?? null } };
}
