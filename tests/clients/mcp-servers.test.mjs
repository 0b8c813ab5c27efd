// MCP servers that others wrote, behind our gates: each is added, imported and built by the command line as a user would, and
// then called by an agent in a written conversation.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { textOf, toolsOf, visit } from './support/chat.mjs';
import { behind, program, startDeck, until, withoutOurs } from './support/deck.mjs';
import { startPuppet } from './support/puppet.mjs';
import { startEverything, stdioServers, subjects } from './mcp/servers.mjs';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'quarterdeck-mcp-')));
const tools = join(folder, 'tools');
const config = join(folder, 'quarterdeck.toml');
const servers = stdioServers(folder);
let everything, puppet, deck;

/** A call to each server that is slow to start. */
const probes = [
  ['get_current_time', { timezone: 'UTC' }],
  ['git_status', { repo_path: join(folder, 'repository') }],
  ['fetch', { url: 'http://127.0.0.1:1/' }],
  ['read_graph', {}],
  ['list_directory', { path: join(folder, 'files') }],
  ['echo', { message: 'ready' }],
  ...(servers.chrome ? [['list_pages', {}]] : []),
];

/** Runs one of our commands as an operator would, in the folder with the configuration. */
async function quarterdeck(...args) {
  const child = spawn(program, args, { cwd: folder, env: withoutOurs(process.env), stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  child.stdout.on('data', (piece) => (out += piece));
  child.stderr.on('data', (piece) => (errors += piece));
  const code = await new Promise((resolve) => child.on('close', resolve));
  assert.equal(code, 0, `quarterdeck ${args.join(' ')}\n${out}${errors}`);
  return out;
}

before(prepare, { timeout: 400_000 });

async function prepare() {
  everything = await startEverything();
  for (const [name, { command, args, env = {} }] of Object.entries(servers)) {
    const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
    await quarterdeck('mcp', 'add', name, '--command', command, ...variables, '--', ...args);
  }
  await quarterdeck('mcp', 'add', 'everything', '--url', everything.url, '--private-host', `127.0.0.1:${everything.port}`);
  // All of them start at once, on a machine that may be busy with other tests.
  const patient = readFileSync(config, 'utf8').replaceAll(/^(\[mcp\.servers\.\w+\])$/gm, '$1\nstart_timeout_seconds = 120');
  writeFileSync(config, patient);
  for (const [name, { tools: chosen = [] }] of Object.entries(servers)) {
    await quarterdeck('mcp', 'import', name, ...chosen, '--tools', tools);
  }
  await quarterdeck('mcp', 'import', 'everything', 'echo', 'get-sum', 'get-structured-content', 'get-tiny-image', '--tools', tools);
  await quarterdeck('build', '--tools', tools);
  puppet = await startPuppet();
  deck = await startDeck(behind(puppet.url), { tools, options: ['--config', config] });
  await until(isReady, 'all servers are connected', 150_000);
}

/** Whether each server answers: until it is connected, its tools say at once that they are not available. */
async function isReady() {
  for (const [tool, input] of probes) {
    const { made } = await call(tool, input);
    if (made.state === 'output-error' && /is not connected/.test(made.errorText)) return false;
  }
  return true;
}

after(async () => {
  const ended = await deck?.stop();
  await puppet?.stop();
  everything?.stop();
  rmSync(folder, { recursive: true, force: true });
  if (deck) assert.equal(ended, 0, 'the server stops cleanly');
});

/** Lets the agent call a tool, and gives the call as the page sees it. */
async function call(tool, input, visitor = visit(deck)) {
  const message = await visitor.say(`call ${tool} ${JSON.stringify(input)}`);
  assert.equal(visitor.chat.error, undefined);
  const [made] = toolsOf(message);
  return { made, visitor, text: textOf(message) };
}

/** The same for one that reads and is answered at once. */
async function read(tool, input) {
  const { made, text } = await call(tool, input);
  assert.equal(made.state, 'output-available', made.errorText ?? made.state);
  assert.match(text, /^Results: /, 'the model has read it');
  return JSON.stringify(made.output);
}

/** Asks for something that writes, decides, and gives the call afterwards. */
async function decide(tool, input, approved, meanwhile = () => {}) {
  const { made, visitor } = await call(tool, input);
  assert.equal(made.state, 'approval-requested', `${tool} needs the user's approval`);
  meanwhile();
  await visitor.chat.addToolApprovalResponse({ id: made.approval.id, approved });
  await until(() => ['ready', 'error'].includes(visitor.chat.status), 'the answer ends', 60_000);
  assert.equal(visitor.chat.error, undefined);
  return toolsOf(visitor.chat.lastMessage)[0];
}

test('every server is a folder per tool, and lists what was imported', async () => {
  const folders = readdirSync(tools, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const bound = new Set();
  for (const { name } of folders) {
    const binding = JSON.parse(readFileSync(join(tools, name, 'handler.mcp.json'), 'utf8'));
    assert.match(binding.digest, /^sha256:[0-9a-f]{64}$/);
    bound.add(binding.server);
  }
  assert.deepEqual([...bound].sort(), [...Object.keys(servers), 'everything'].sort());
  assert.ok(bound.size >= 6, `${bound.size} servers`);
  const listed = await quarterdeck('mcp', 'list', '--offline', '--tools', tools);
  for (const server of bound) assert.match(listed, new RegExp(server));
});

test('filesystem: a file is written when the user approves, and not when they deny', async () => {
  const [path, other] = ['kept.txt', 'never.txt'].map((name) => join(folder, 'files', name));
  const written = await decide('write_file', { path, content: 'steady as she goes' }, true, () =>
    assert.ok(!existsSync(path), 'nothing is written before the user approves'),
  );
  assert.equal(written.state, 'output-available', written.errorText);
  assert.equal(readFileSync(path, 'utf8'), 'steady as she goes');

  const denied = await decide('write_file', { path: other, content: 'no' }, false);
  assert.equal(denied.state, 'output-denied');
  assert.ok(!existsSync(other));

  assert.match(await read('read_text_file', { path }), /steady as she goes/);
  assert.match(await read('list_directory', { path: join(folder, 'files') }), /kept\.txt/);
});

test('filesystem: an error of the server reaches the model as an error, and not as a result', async () => {
  const { made } = await call('read_text_file', { path: '/etc/passwd' });
  assert.equal(made.state, 'output-error');
});

test('git: a commit is made when the user approves, and not when they deny', async () => {
  const repo_path = join(folder, 'repository');
  assert.match(await read('git_status', { repo_path }), /log\.txt/);
  await decide('git_commit', { repo_path, message: 'Not this one' }, false);
  assert.deepEqual(subjects(folder), ['Begin']);
  const committed = await decide('git_commit', { repo_path, message: 'Keep a log' }, true);
  assert.equal(committed.state, 'output-available', committed.errorText);
  assert.deepEqual(subjects(folder), ['Keep a log', 'Begin']);
  assert.match(await read('git_log', { repo_path }), /Keep a log/);
});

test('memory: what is approved is remembered', async () => {
  const entities = [{ name: 'Fram', entityType: 'ship', observations: ['drifts with the ice'] }];
  const made = await decide('create_entities', { entities }, true);
  assert.equal(made.state, 'output-available', made.errorText);
  assert.match(await read('search_nodes', { query: 'Fram' }), /drifts with the ice/);
});

test('sequential-thinking: a thought is counted', async () => {
  const thought = { thought: 'First things first.', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
  assert.match(await read('sequentialthinking', thought), /thoughtHistoryLength/);
});

test('time: a time is converted', async () => {
  const input = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
  assert.match(await read('convert_time', input), /21:00/);
});

test('fetch: a page is read', async () => {
  const page = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<article><h1>Log</h1><p>Fair winds today.</p></article>');
  });
  await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
  try {
    assert.match(await read('fetch', { url: `http://127.0.0.1:${page.address().port}/`, raw: true }), /Fair winds today/);
  } finally {
    page.close();
  }
});

// Names that are no tool ids here have the server's before them.
test('everything, over HTTP: text, numbers and structured content come back, and an image by reference', async () => {
  assert.match(await read('echo', { message: 'ahoy' }), /Echo: ahoy/);
  assert.match(await read('everything_get_sum', { a: 19, b: 23 }), /42/);
  assert.match(await read('everything_get_structured_content', { location: 'Chicago' }), /temperature/);
  const image = await read('everything_get_tiny_image', {});
  assert.doesNotMatch(image, /iVBORw0KGgo/, 'no model reads an image as text');
});

test('chrome-devtools: a page is opened and listed', { skip: !servers.chrome && 'Chromium is not installed' }, async () => {
  const opened = await decide('new_page', { url: 'data:text/html,<title>Log</title>Fair winds' }, true);
  assert.equal(opened.state, 'output-available', opened.errorText);
  assert.match(await read('list_pages', {}), /data:text\/html/);
});

test('a server that is killed is started again, and its tools answer', async () => {
  const input = { timezone: 'UTC' };
  assert.match(await read('get_current_time', input), /UTC/);
  const [killed, ...others] = children('mcp-server-time');
  assert.deepEqual(others, [], 'all conversations share one process');
  process.kill(killed, 'SIGKILL');
  await until(() => children('mcp-server-time').some((pid) => pid !== killed), 'it was started again', 30_000);
  await until(async () => (await call('get_current_time', input)).made.state === 'output-available', 'it answers', 30_000);
});

/** The processes that our server has started and whose command line has some words. */
function children(words) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => about(name, 'status').includes(`\nPPid:\t${deck.pid}\n`) && about(name, 'cmdline').includes(words))
    .map(Number);
}

function about(process, file) {
  try {
    return readFileSync(`/proc/${process}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
