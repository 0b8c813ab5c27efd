// One block with a resource.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

export function execute() {
  return { ok: true, data: { _mcp: { content: [{ type: 'resource', resource: RESOURCE }] } } };
}

const RESOURCE = {
  uri: 'test://embedded-resource',
  mimeType: 'text/plain',
  text: 'This is an embedded resource content.',
};
