// The pages' modules hold to the types that their comments promise.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { installed } from './support/browser.mjs';

test('TypeScript has nothing to say about the pages', () => {
  const project = fileURLToPath(new URL('tsconfig.json', import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [installed('typescript/bin/tsc'), '--project', project],
    { encoding: 'utf8' },
  );
  assert.equal(stdout + stderr, '');
  assert.equal(status, 0);
});
