// Does not run when the state was changed on the way.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { approved: true } };
}
