// One block with a picture of one pixel.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { _mcp: { content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] } } };
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
