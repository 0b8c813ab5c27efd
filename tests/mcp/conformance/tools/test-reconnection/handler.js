// Slow enough that the stream is open before the answer is there.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export async function execute() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { ok: true, data: { reconnected: false } };
}
