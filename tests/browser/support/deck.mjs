// Starts `quarterdeck serve` for a page, and starts it again where it was.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
export const program = process.env.DECK_PROGRAM ?? join(repository, 'target/debug/quarterdeck');

/** A server with the sample tools or others and the sample knowledge base, on a free port, with data of its own. */
export async function startDeck(settings = {}, { tools = join(repository, 'tools'), flags = [] } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'quarterdeck-browser-'));
  let { child, address } = await serve(data, tools, '127.0.0.1:0', settings, flags);
  // Browsers give the microphone to localhost, which is the same machine.
  const url = `http://localhost:${address.split(':')[1]}`;
  return {
    url,
    /** Pulls the plug. */
    kill: () => end(child, 'SIGKILL'),
    /** Starts it again, at the same address and with the same data. */
    async start() {
      ({ child } = await serve(data, tools, address, settings, flags));
    },
    /** Stops it as an operator would. */
    stop: () => end(child, 'SIGTERM'),
    async remove() {
      await end(child, 'SIGKILL');
      rmSync(data, { recursive: true, force: true });
    },
  };
}

async function serve(data, tools, listen, settings, flags) {
  const folders = ['--data', data, '--tools', tools, '--kb', join(repository, 'kb')];
  const child = spawn(program, ['serve', '--listen', listen, ...folders, ...flags], {
    // Away from the repository, so that no local configuration counts.
    cwd: data,
    env: { ...withoutOurs(process.env), ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  const address = await new Promise((resolve, reject) => {
    const slow = setTimeout(() => child.kill('SIGKILL'), 60_000);
    child.stderr.on('data', (piece) => {
      log += piece;
      const found = log.match(/ on http:\/\/([\d.:]+)\n/);
      if (!found) return;
      clearTimeout(slow);
      resolve(found[1]);
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}\n${log}`)));
  });
  return { child, address };
}

async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
  await exited;
  clearTimeout(late);
}

function withoutOurs(environment) {
  const theirs = /^(QUARTERDECK_|GEMINI_|GOOGLE_API_KEY|OPENAI_|ANTHROPIC_)/;
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !theirs.test(name)));
}
