// Schemathesis, led by the server's own description: no fault of ours, and no answer that the description does not know.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDeck } from './support/deck.mjs';

/** What a schema cannot say, and is therefore not judged. */
const exceptions = fileURLToPath(new URL('../../crates/server/tests/schemathesis.toml', import.meta.url));

/** An id that the generator cannot guess. */
const knownSession = `
[[operations]]
include-operation-id = "getSession"
parameters = { id = "known" }
`;

test('Schemathesis finds no fault and no answer that is not described', { timeout: 180_000 }, async () => {
  const deck = await startDeck({
    QUARTERDECK_TEXT__PROVIDER: 'rehearsal',
    QUARTERDECK_TEXT__REHEARSAL__PACE_MS: '0',
    // How often one may ask is not what is tried here.
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000000',
    QUARTERDECK_LIMITS__STREAMS_PER_CLIENT: '1000',
  });
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-openapi-'));
  const config = join(folder, 'schemathesis.toml');
  try {
    const cookie = await talk(deck);
    writeFileSync(config, readFileSync(exceptions, 'utf8') + knownSession);
    const limits = ['--max-examples', '20', '--max-time', '60', '--request-timeout', '20'];
    const exact = ['--generation-deterministic', '--no-color', '--header', `Cookie: ${cookie}`];
    const given = ['--config-file', config, 'run', `${deck.url}/openapi.json`, ...limits, ...exact];
    // It leaves notes where it runs.
    const options = { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] };
    const tester = spawn(join(process.env.DECK_PYTHON, 'schemathesis'), given, options);
    assert.equal(await new Promise((resolve) => tester.on('exit', resolve)), 0, 'see above');
    assert.doesNotMatch(deck.log(), /panicked/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    assert.equal(await deck.stop(), 0, 'the server stops cleanly');
  }
});

/** One visitor makes all requests, so that they meet what earlier ones have left: here a conversation with calls. */
async function talk(deck) {
  const response = await fetch(`${deck.url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'known', message: 'Who built the Fram?' }),
  });
  assert.match(await response.text(), /kb_search/);
  return response.headers.getSetCookie()[0].split(';')[0];
}
