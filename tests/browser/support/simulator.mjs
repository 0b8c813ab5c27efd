// A live provider that does what a scenario says: `quarterdeck simulate live`.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from './deck.mjs';

/** Starts one, and gives the settings with which a server uses it. */
export async function startSimulator(scenario) {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-simulator-'));
  const file = join(folder, 'scenario.json');
  writeFileSync(file, JSON.stringify(scenario));
  const child = spawn(program, ['simulate', 'live', '--listen', '127.0.0.1:0', '--scenario', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  const address = await new Promise((resolve, reject) => {
    const read = (piece) => {
      log += piece;
      const found = log.match(/127\.0\.0\.1:\d+/);
      if (found) resolve(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`the simulator ended with ${code}\n${log}`)));
  });
  return {
    settings: {
      QUARTERDECK_VOICE__PROVIDER: 'gemini',
      QUARTERDECK_VOICE__BASE_URL: `http://${address}`,
    },
    remove() {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The same provider, far away: every byte takes a while in each direction. */
export async function delayed(simulator, oneWayMs) {
  const { port } = new URL(simulator.settings.QUARTERDECK_VOICE__BASE_URL);
  const carry = (from, to) => {
    from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), oneWayMs));
    from.on('close', () => setTimeout(() => to.destroy(), oneWayMs));
    from.on('error', () => {});
  };
  const proxy = createServer((client) => {
    const server = connect(Number(port), '127.0.0.1');
    carry(client, server);
    carry(server, client);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    settings: { ...simulator.settings, QUARTERDECK_VOICE__BASE_URL: `http://127.0.0.1:${proxy.address().port}` },
    remove() {
      proxy.close();
      simulator.remove();
    },
  };
}
