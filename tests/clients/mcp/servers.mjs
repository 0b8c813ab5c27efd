// MCP servers that others wrote, as their users start them.

import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const packages = process.env.DECK_PACKAGES;
const python = process.env.DECK_MCP_PYTHON;
const chromium = process.env.BROWSER_PROGRAM;

const inNode = (name, file, ...more) => ({ command: process.execPath, args: [join(packages, 'node_modules', name, file), ...more] });
const reference = (name, ...more) => inNode(`@modelcontextprotocol/${name}`, 'dist/index.js', ...more);
const inPython = (name, ...more) => ({ command: join(python, name), args: more });

/**
 * The servers over stdio, with a folder of their own to work in: the command, its environment, and the tools to import (all if
 * there are none).
 */
export function stdioServers(folder) {
  const files = join(folder, 'files');
  mkdirSync(files);
  const servers = {
    filesystem: { ...reference('server-filesystem', files), tools: ['read_text_file', 'write_file', 'list_directory'] },
    memory: { ...reference('server-memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    thinking: reference('server-sequential-thinking'),
    time: inPython('mcp-server-time', '--local-timezone', 'UTC'),
    git: {
      ...inPython('mcp-server-git', '--repository', repository(folder)),
      // It runs `git`, and finds it nowhere but here.
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      tools: ['git_status', 'git_log', 'git_commit'],
    },
    fetch: inPython('mcp-server-fetch', '--ignore-robots-txt', '--allow-private-ips'),
  };
  if (chromium && existsSync(chromium)) {
    const options = ['--headless', '--isolated', '--executablePath', chromium, '--chromeArg=--no-sandbox'];
    servers.chrome = {
      ...inNode('chrome-devtools-mcp', 'build/src/bin/chrome-devtools-mcp.js', ...options),
      env: { HOME: folder },
      tools: ['new_page', 'list_pages', 'evaluate_script'],
    };
  }
  return servers;
}

/** A repository with one file that is staged and not committed. */
function repository(folder) {
  const path = join(folder, 'repository');
  const git = (...args) => {
    const { status, stderr } = spawnSync('git', ['-C', path, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`git ${args}: ${stderr}`);
  };
  mkdirSync(path);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Ann');
  git('config', 'user.email', 'ann@example.com');
  git('commit', '--quiet', '--allow-empty', '--message=Begin');
  spawnSync('sh', ['-c', 'echo aye > log.txt'], { cwd: path });
  git('add', 'log.txt');
  return path;
}

/** The subjects of the repository's commits, newest first. */
export function subjects(folder) {
  const { stdout } = spawnSync('git', ['-C', join(folder, 'repository'), 'log', '--format=%s'], { encoding: 'utf8' });
  return stdout.trim().split('\n');
}

/** The reference server `everything` over streamable HTTP, on a free port. */
export async function startEverything() {
  const port = await freePort();
  const { command, args } = reference('server-everything', 'streamableHttp');
  const child = spawn(command, args, { env: { PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
  await new Promise((resolve, reject) => {
    let log = '';
    child.stderr.on('data', (piece) => {
      log += piece;
      if (log.includes('listening on port')) resolve();
    });
    child.on('exit', (code) => reject(new Error(`server-everything ended with ${code}\n${log}`)));
  });
  return { port, url: `http://127.0.0.1:${port}/mcp`, stop: () => child.kill('SIGKILL') };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
