// One block with a sound of two samples.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { _mcp: { content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] } } };
}

const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==';
