// Starts `quarterdeck serve` for a test, and stops it.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const program = process.env.DECK_PROGRAM ?? join(repository, 'target/debug/quarterdeck');

/** A server with the sample tools and knowledge base, on a free port, with data of its own. */
export async function startDeck(settings = {}) {
  const data = mkdtempSync(join(tmpdir(), 'quarterdeck-clients-'));
  const folders = ['--data', data, '--tools', join(repository, 'tools'), '--kb', join(repository, 'kb')];
  const child = spawn(program, ['serve', '--listen', '127.0.0.1:0', ...folders], {
    // Away from the repository, so that nobody's own configuration counts.
    cwd: data,
    env: { ...withoutOurs(process.env), ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  const url = await new Promise((resolve, reject) => {
    const slow = setTimeout(() => child.kill('SIGKILL'), 60_000);
    child.stderr.on('data', (piece) => {
      log += piece;
      const found = log.match(/ on (http:\/\/[\d.:]+)\n/);
      if (found) {
        clearTimeout(slow);
        resolve(found[1]);
      }
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}\n${log}`)));
  });
  const exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  return {
    url,
    log: () => log,
    /** Stops it as an operator would. Says how it ended. */
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
      const ended = await exited;
      clearTimeout(late);
      rmSync(data, { recursive: true, force: true });
      return ended;
    },
  };
}

function withoutOurs(environment) {
  const theirs = /^(QUARTERDECK_|GEMINI_|GOOGLE_API_KEY|OPENAI_|ANTHROPIC_)/;
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !theirs.test(name)));
}

/** The settings that put a model of OpenAI's protocol behind the server. */
export function behind(baseUrl, more = {}) {
  return {
    QUARTERDECK_TEXT__PROVIDER: 'openai',
    QUARTERDECK_TEXT__BASE_URL: baseUrl,
    QUARTERDECK_TEXT__MODEL: 'puppet',
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '10000',
    ...more,
  };
}

/** A `fetch` that keeps its cookie, as a browser does. Every browser is another client. */
export function browser() {
  let cookie;
  return async (url, options = {}) => {
    const headers = new Headers(options.headers);
    if (cookie) headers.set('cookie', cookie);
    const response = await fetch(url, { ...options, headers });
    const set = response.headers.getSetCookie().at(-1);
    if (set) cookie = set.split(';')[0];
    return response;
  };
}

/** Waits until something holds; the reason is what it says when it never does. */
export async function until(holds, reason, milliseconds = 5_000) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${milliseconds} ms in vain: ${reason}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
