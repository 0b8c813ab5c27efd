// One program of ours: started, found by the address that it prints, and stopped as an operator would.

import { spawn } from 'node:child_process';

/** Starts a program and waits for its address. `what` is what an error calls it. */
export async function started(what, program, options, settings = {}) {
  const child = spawn(program, options, { ...settings, stdio: ['ignore', 'ignore', 'pipe'] });
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
    child.on('exit', (code) => reject(new Error(`${what} ended with ${code}\n${log}`)));
  });
  const exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  return {
    url,
    pid: child.pid,
    log: () => log,
    /** Stops it as an operator would. What it ended with. */
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
      const ended = await exited;
      clearTimeout(late);
      return ended;
    },
  };
}
