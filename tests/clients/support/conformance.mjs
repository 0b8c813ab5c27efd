// The official conformance suite of MCP, as its command line has it, with the failures that we expect of ourselves.

import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** Runs scenarios of an installed suite. What it ended with, what it printed last, and each check that did not pass. */
export async function conformance(suite, url, choice, expected) {
  const program = join(process.env.DECK_PACKAGES, 'node_modules', suite, 'dist/index.js');
  const cwd = mkdtempSync(join(tmpdir(), 'quarterdeck-conformance-'));
  const options = [program, 'server', '--url', url, ...choice, '--expected-failures', expected, '--output-dir', cwd];
  const ended = await new Promise((resolve) => {
    execFile(process.execPath, options, { cwd, timeout: 120_000, maxBuffer: 64 << 20 }, (error, out, errors) =>
      resolve({ code: error ? (error.code ?? error.signal) : 0, text: lastPart(plain(out + errors)), faults: faults(cwd) }),
    );
  });
  rmSync(cwd, { recursive: true, force: true });
  return ended;
}

/** Why a run failed, for the log. */
export function report({ text, faults }) {
  return [...faults, text].join('\n');
}

function lastPart(text) {
  const begin = ['=== SUMMARY ===', 'Test Results:'].map((mark) => text.lastIndexOf(mark)).find((at) => at >= 0);
  return text.slice(begin ?? 0);
}

/** The checks below a folder of results that did not pass, in the suite's own words. */
function faults(folder) {
  return globSync('**/checks.json', { cwd: folder }).flatMap((file) => {
    const scenario = basename(dirname(file)).replace(/^server-|-\d{4}-.*$/g, '');
    const checks = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
    return failed.map(({ id, status, errorMessage }) => `${scenario}:${id} ${status} ${errorMessage ?? ''}`);
  });
}

/** How many scenarios a run has had, and the totals of its checks. */
export function totals(text) {
  const found = text.match(/Total: (\d+) passed, (\d+) failed/);
  return found ? { passed: Number(found[1]), failed: Number(found[2]) } : undefined;
}

/** The entries of a file of expected failures, each with the comment above it. Everything else in it is a mistake. */
export function readExpected(file) {
  const entries = [];
  let reason = [];
  for (const [place, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const comment = line.match(/^ {2}# (.+)$/);
    const entry = line.match(/^ {2}- ([\w-]+(?::[\w$-]+)?)$/);
    if (comment) reason.push(comment[1]);
    else if (entry) {
      entries.push({ name: entry[1], reason: reason.join(' ') });
      reason = [];
    } else if (!/^(server:( \[\])?|# .*|)$/.test(line)) throw new Error(`${file}:${place + 1}: ${line}`);
  }
  return entries;
}

function plain(text) {
  return text.replace(/\u001b\[[\d;]*m/g, '');
}
