// The guide of this tool is what is looked at, as a prompt.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { guide: 'see the prompt of this name' } };
}
