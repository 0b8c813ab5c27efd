// Starts servers that are not ours. Each says the same three things: see toy_model.py.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from '../support/packages.mjs';

const python = join(process.env.DECK_PYTHON, 'python');
const beside = (name) => fileURLToPath(new URL(name, import.meta.url));

/** llama.cpp's own server, with a model that we make. */
export async function startLlama() {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-llama-'));
  const model = join(folder, 'toy.gguf');
  execFileSync(python, [beside('toy_model.py'), model]);
  const server = await run(python, [beside('llama_server.py'), model]);
  return {
    url: `${server.address}/v1`,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** CopilotKit's stand-in for the providers, which follows what they really send. */
export async function startAimock() {
  const { LLMock } = await load('@copilotkit/aimock');
  const server = new LLMock({ port: 0, strict: true });
  const call = { name: 'format_datetime', arguments: '{"datetime": "2026-01-13T09:30:00Z", "style": "date"}' };
  server.on({ toolName: 'format_datetime', hasToolResult: true }, { content: 'It is the thirteenth.' });
  server.on({ toolName: 'format_datetime', userMessage: /date/ }, { toolCalls: [call] });
  server.onMessage('hello', { content: 'Good morning to you!' });
  await server.start();
  return { url: `${server.url}/v1`, stop: () => server.stop() };
}

/** Runs a program until it prints its address. */
async function run(program, given) {
  const child = spawn(program, given, { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  let log = '';
  const exited = new Promise((resolve) => child.on('exit', resolve));
  const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const address = await new Promise((resolve, reject) => {
    child.stdout.on('data', (piece) => {
      printed += piece;
      const found = printed.match(/^(http:\S+)\n/m);
      if (found) resolve(found[1]);
    });
    child.stderr.on('data', (piece) => (log += piece));
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${program} ended with ${code}\n${log}`)));
  });
  clearTimeout(late);
  return {
    address,
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
