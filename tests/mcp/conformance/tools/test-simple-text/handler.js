// One block of text.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { _mcp: { content: [{ type: 'text', text: 'This is a simple text response for testing.' }] } } };
}
