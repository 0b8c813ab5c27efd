// What a handler logs is the operator's, not the client's.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call} call */
export function execute({ context }) {
  context.audit.log('fixture.ran', { stage: 'only' });
  return { ok: true, data: { logged: true } };
}
