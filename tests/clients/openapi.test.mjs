// Schemathesis, led by the server's own description: no fault of ours, and no answer that the description does not know.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDeck } from './support/deck.mjs';

/** What a schema cannot say, and is therefore not judged. */
const exceptions = fileURLToPath(new URL('../../crates/server/tests/schemathesis.toml', import.meta.url));

test('Schemathesis finds no fault and no answer that is not described', { timeout: 180_000 }, async (context) => {
  const deck = await startDeck({
    QUARTERDECK_TEXT__PROVIDER: 'rehearsal',
    QUARTERDECK_TEXT__REHEARSAL__PACE_MS: '0',
    // How often one may ask is not what is tried here.
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000000',
    QUARTERDECK_LIMITS__STREAMS_PER_CLIENT: '1000',
  });
  try {
    const document = await (await fetch(`${deck.url}/openapi.json`)).json();
    if (Object.keys(document.paths).length === 0) return context.skip('the description has no paths yet');
    // One visitor makes all requests, so that they meet what earlier ones have left.
    const [cookie] = (await fetch(`${deck.url}/api/me`)).headers.getSetCookie()[0].split(';');
    const configured = existsSync(exceptions) ? ['--config-file', exceptions] : [];
    const limits = ['--max-examples', '20', '--max-time', '60', '--request-timeout', '20'];
    const exact = ['--generation-deterministic', '--no-color', '--header', `Cookie: ${cookie}`];
    const given = [...configured, 'run', `${deck.url}/openapi.json`, ...limits, ...exact];
    const tester = spawn(join(process.env.DECK_PYTHON, 'schemathesis'), given, { stdio: ['ignore', 'inherit', 'inherit'] });
    assert.equal(await new Promise((resolve) => tester.on('exit', resolve)), 0, 'see above');
    assert.doesNotMatch(deck.log(), /panicked/);
  } finally {
    assert.equal(await deck.stop(), 0, 'the server stops cleanly');
  }
});
