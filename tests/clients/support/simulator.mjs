// Starts `quarterdeck simulate live` for a test, and stops it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { started } from './program.mjs';

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
  const running = await started('the simulator', program, options);
  return {
    ...running,
    /** Stops it. What it ended with: 0 when it has nothing to complain about. */
    async stop() {
      const ended = await running.stop();
      rmSync(folder, { recursive: true, force: true });
      return { ended, log: running.log() };
    },
  };
}
