// Runs in the second round, with the approval of the user.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { approved: true } };
}
