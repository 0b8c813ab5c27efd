// Runs as a task once the user has approved it.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ filename: string }>} call */
export function execute({ args }) {
  return { ok: true, data: { deleted: args.filename } };
}
