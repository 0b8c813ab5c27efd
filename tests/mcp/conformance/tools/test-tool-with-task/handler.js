// Runs as a task once the user has approved it.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { approved: true } };
}
