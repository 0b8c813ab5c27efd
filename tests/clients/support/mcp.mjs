// MCP clients that are not ours, each behind the same few verbs: list, call, close. `answer` is what the user does when asked.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load, loadFile, programOf } from './packages.mjs';

const ME = { name: 'quarterdeck-tests', version: '1.0.0' };

/** The first generation: a handshake, a session, and questions that the server asks. `place` is a URL or a program. */
export async function withSdk(place, answer) {
  const { Client } = await loadFile('@modelcontextprotocol/sdk', 'dist/esm/client/index.js');
  const { StreamableHTTPClientTransport } = await loadFile('@modelcontextprotocol/sdk', 'dist/esm/client/streamableHttp.js');
  const { StdioClientTransport } = await loadFile('@modelcontextprotocol/sdk', 'dist/esm/client/stdio.js');
  const { ElicitRequestSchema } = await loadFile('@modelcontextprotocol/sdk', 'dist/esm/types.js');
  const client = new Client(ME, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
  await client.connect(transport(place, StreamableHTTPClientTransport, StdioClientTransport));
  return {
    client,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    close: () => client.close(),
  };
}

/** The second generation, as a client of either protocol: `legacy`, or a version that it insists on. */
export async function withClient(place, mode, answer) {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await loadFile('@modelcontextprotocol/client', 'dist/stdio.mjs');
  const client = new Client(ME, { capabilities: answer ? { elicitation: {} } : {}, versionNegotiation: { mode } });
  if (answer) client.setRequestHandler('elicitation/create', ({ params }) => answer(params));
  await client.connect(transport(place, StreamableHTTPClientTransport, StdioClientTransport));
  return {
    client,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    close: () => client.close(),
  };
}

function transport(place, Http, Stdio) {
  if (typeof place === 'string') return new Http(new URL(place));
  // What such a client leaves of the environment is its own choice; ours is not for the test.
  return new Stdio({ ...place, stderr: 'ignore' });
}

/** One command of the inspector. Its result, and what it ended with. */
export function inspect(url, era, ...options) {
  const program = programOf('@modelcontextprotocol/inspector', 'clients/launcher/build/index.js');
  const all = [program, '--cli', url, '--transport', 'http', '--protocol-era', era, '--format', 'json', '--quiet', ...options];
  // It keeps what it knows of servers in the home folder, which is not ours to write to.
  const home = mkdtempSync(join(tmpdir(), 'quarterdeck-inspector-'));
  const settings = { timeout: 60_000, maxBuffer: 16 << 20, env: { ...process.env, HOME: home } };
  return new Promise((resolve) => {
    execFile(process.execPath, all, settings, (error, out, errors) => {
      rmSync(home, { recursive: true, force: true });
      const code = error ? (error.code ?? error.signal) : 0;
      resolve({ code, result: out.startsWith('{') ? JSON.parse(out).result : undefined, errors: errors || out });
    });
  });
}

/** What a user does who ticks every box of a question. */
export function approving({ requestedSchema }) {
  const boxes = Object.entries(requestedSchema?.properties ?? {}).filter(([, { type }]) => type === 'boolean');
  return { action: 'accept', content: Object.fromEntries(boxes.map(([name]) => [name, true])) };
}

/** What a user does who sends the form and ticks nothing. */
export function tickingNothing({ requestedSchema }) {
  const { action, content } = approving({ requestedSchema });
  return { action, content: Object.fromEntries(Object.keys(content).map((name) => [name, false])) };
}

/** What a user does who says no. */
export function declining() {
  return { action: 'decline' };
}

/** What a user does who closes the window. */
export function closing() {
  return { action: 'cancel' };
}

/** Decides on one of the server's own pages, as a browser on this machine does: it reads the form and sends it. */
export async function decideOn(page, decision) {
  const html = await (await fetch(page)).text();
  const hidden = [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  const body = new URLSearchParams([...hidden, ['decision', decision]]);
  const response = await fetch(page, { method: 'POST', headers: { origin: new URL(page).origin }, body });
  return { status: response.status, html: await response.text() };
}
