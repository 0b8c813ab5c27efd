// OpenAI's Python client: `openai_test.py` with a server and a puppet behind it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { booking, looking } from './support/calendar.mjs';
import { behind, startDeck } from './support/deck.mjs';
import { startPuppet } from './support/puppet.mjs';

test("OpenAI's Python client", async () => {
  const key = 'a-key-of-the-tests-that-is-long';
  const puppet = await startPuppet({
    refuse: (response) => response.writeHead(400).end('{"error":{"message":"no such model"}}'),
  });
  const deck = await startDeck(behind(puppet.url, { QUARTERDECK_API_KEY_TESTER: key }));
  try {
    const script = fileURLToPath(new URL('openai_test.py', import.meta.url));
    const day = 20;
    const python = spawn(join(process.env.DECK_PYTHON, 'python'), [script], {
      env: { ...process.env, DECK_URL: deck.url, DECK_KEY: key, DECK_BOOKING: booking(day), DECK_LOOKING: looking(day) },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    assert.equal(await new Promise((resolve) => python.on('exit', resolve)), 0);
  } finally {
    assert.equal(await deck.stop(), 0, 'the server stops cleanly');
    await puppet.stop();
  }
});
