// Answers at once: never a task.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ name: string }>} call */
export function execute({ args }) {
  return { ok: true, data: { _mcp: { content: [{ type: 'text', text: `Hello, ${args.name}!` }] } } };
}
