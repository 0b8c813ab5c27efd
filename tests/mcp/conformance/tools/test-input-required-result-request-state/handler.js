// Runs when the state that the client echoed was ours.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { state: 'state-ok' } };
}
