// Several nodes of a cluster: a database, servers that share it, and a load balancer before them.

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startDeck } from './deck.mjs';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const programs = process.env.POSTGRES_PROGRAMS ?? join(repository, 'target/postgres/18');
/** PostgreSQL does not run as root. */
const UNPRIVILEGED = 65_534;

/** Whether there is a database to be had; `scripts/postgres` installs one. */
export const hasDatabase = existsSync(join(programs, 'postgres'));

export async function startDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-postgres-'));
  const user = process.getuid() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};
  if (user.uid) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  const port = await freePort();
  const data = join(folder, 'data');
  const run = (program, args) => execFileSync(join(programs, program), args, { ...user, cwd: folder, stdio: 'pipe' });
  run('initdb', ['-D', data, '-U', 'qd', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C']);
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`, 'fsync=off'];
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const child = spawn(join(programs, 'postgres'), ['-D', data, ...flags], { ...user, cwd: folder, stdio: 'ignore' });
  for (let attempt = 1; !(await isListening(port)); attempt += 1) {
    if (attempt > 300 || child.exitCode !== null) throw new Error('PostgreSQL did not start');
    await sleep(100);
  }
  return {
    url: `postgres://qd@127.0.0.1:${port}/postgres?sslmode=disable`,
    async remove() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGQUIT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Servers of these names on one database. */
export function startNodes(database, names, settings = {}) {
  const start = (name) =>
    startDeck({ QUARTERDECK_STORE__URL: database.url, QUARTERDECK_CLUSTER__NODE: name, ...settings });
  return Promise.all(names.map(start));
}

/** Passes each connection on to the next node that accepts it. */
export async function startBalancer(nodes) {
  const ports = nodes.map(({ url }) => Number(new URL(url).port));
  let next = 0;
  let ofCall = null;
  const open = new Set();
  const connect = (near, attempt) => {
    const at = next++ % ports.length;
    const far = net.connect(ports[at], '127.0.0.1');
    far.once('error', () => (attempt < ports.length ? connect(near, attempt + 1) : near.destroy()));
    far.once('connect', () => {
      far.removeAllListeners('error');
      tie(near, far);
      near.once('data', (head) => {
        if (head.includes('GET /voice')) ofCall = nodes[at];
      });
      near.pipe(far).pipe(near);
    });
  };
  const tie = (near, far) => {
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
  };
  const server = net.createServer((near) => {
    near.on('error', () => {});
    connect(near, 1);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${server.address().port}`,
    /** The node that the latest call was passed on to. */
    nodeOfCall: () => ofCall,
    stop() {
      open.forEach((socket) => socket.destroy());
      server.close();
    },
  };
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
