// Servers of OpenAI's protocol that are not ours: the agent holds a conversation with a tool call through each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf, toolsOf, visit } from './support/chat.mjs';
import { behind, startDeck } from './support/deck.mjs';
import { startAimock, startLlama } from './servers/start.mjs';

for (const [name, start] of [['llama.cpp', startLlama], ['aimock', startAimock]]) {
  test(`a conversation with a tool call, by ${name}`, { timeout: 120_000 }, async () => {
    const server = await start();
    let deck;
    try {
      deck = await startDeck(behind(server.url, { QUARTERDECK_TEXT__MODEL: 'toy', OPENAI_API_KEY: 'none' }));
      const { chat, say } = visit(deck);
      assert.equal(textOf(await say('hello')), 'Good morning to you!');
      const answer = await say('Which date is that?');
      assert.equal(chat.error, undefined);
      const [tool] = toolsOf(answer);
      assert.equal(tool.toolName, 'format_datetime');
      assert.deepEqual(tool.input, { datetime: '2026-01-13T09:30:00Z', style: 'date' });
      assert.equal(tool.state, 'output-available');
      assert.equal(textOf(answer), 'It is the thirteenth.');
      assert.equal(textOf(await say('hello again')), 'Good morning to you!');
      assert.ok(answer.metadata.usage.totalTokens > 0, 'the usage is told');
    } finally {
      await deck?.stop();
      await server.stop();
    }
  });
}
