// The guide of this tool is what is looked at, as a prompt whose arguments are those of the tool.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ arg1: string, arg2: string }>} call */
export function execute({ args }) {
  return { ok: true, data: { words: `${args.arg1} ${args.arg2}` } };
}
