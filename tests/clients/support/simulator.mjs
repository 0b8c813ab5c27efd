// Starts `quarterdeck simulate live` for a test, and stops it.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const program = process.env.DECK_PROGRAM ?? join(repository, 'target/debug/quarterdeck');

/** A simulator on a free port that plays a scenario; without one, the rehearsal answers. */
export async function startSimulator(scenario) {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-simulator-'));
  const options = ['simulate', 'live', '--listen', '127.0.0.1:0', '--speech', 'tones'];
  if (scenario) {
    const file = join(folder, 'scenario.json');
    writeFileSync(file, JSON.stringify(scenario));
    options.push('--scenario', file);
  }
  const child = spawn(program, options, { stdio: ['ignore', 'ignore', 'pipe'] });
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
    child.on('exit', (code) => reject(new Error(`the simulator ended with ${code}\n${log}`)));
  });
  const exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  return {
    url,
    log: () => log,
    /** Stops it. What it ended with: 0 when it has nothing to complain about. */
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
      const ended = await exited;
      clearTimeout(late);
      rmSync(folder, { recursive: true, force: true });
      return { ended, log };
    },
  };
}
