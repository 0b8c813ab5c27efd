// Starts `quarterdeck serve` for a test, and stops it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { started } from './program.mjs';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
export const program = process.env.DECK_PROGRAM ?? join(repository, 'target/debug/quarterdeck');

/** A server on a free port, with data of its own, and the sample tools and knowledge base unless others are named. */
export async function startDeck(settings = {}, { tools = 'tools', kb = 'kb', options = [] } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'quarterdeck-clients-'));
  const folders = ['--data', data, '--tools', resolve(repository, tools), '--kb', resolve(repository, kb), ...options];
  const running = await started('the server', program, ['serve', '--listen', '127.0.0.1:0', ...folders], {
    // Away from the repository, so that no local configuration counts.
    cwd: data,
    env: { ...withoutOurs(process.env), ...settings },
  });
  return {
    ...running,
    /** The folder with its store and its audit trail. */
    data,
    /** Stops it as an operator would. Says how it ended. */
    async stop() {
      const ended = await running.stop();
      rmSync(data, { recursive: true, force: true });
      return ended;
    },
  };
}

/** An environment without our settings and keys. */
export function withoutOurs(environment) {
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
    if (Date.now() > end) throw new Error(`timed out after ${milliseconds} ms: ${reason}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
