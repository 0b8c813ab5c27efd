// The official conformance suite of MCP against our server, with the suite's fixtures as a tool pack. What we do not pass
// stands in tests/mcp/conformance/expected-failures, with the reason above each entry; what passes must not stand there.

import assert from 'node:assert/strict';
import { appendFileSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { conformance, readExpected, report, totals } from './support/conformance.mjs';
import { startDeck } from './support/deck.mjs';
import { copyTools } from './support/pack.mjs';

const pack = fileURLToPath(new URL('../mcp/conformance/', import.meta.url));
const expected = (name) => join(pack, 'expected-failures', `${name}.yaml`);

const SETTINGS = {
  QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '100000',
  QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_ADDRESS: '100000',
};

let tools;
let deck;

before(async () => {
  tools = copyTools('tests/mcp/conformance/tools');
  deck = await startDeck(SETTINGS, { tools: tools.folder, kb: join(pack, 'kb') });
});

after(async () => {
  assert.equal(await deck?.stop(), 0, 'the server stops cleanly');
  tools.remove();
});

async function passes(suite, choice, file) {
  const run = await conformance(suite, `${deck.url}/mcp`, choice, expected(file));
  assert.equal(run.code, 0, report(run));
  return totals(run.text);
}

const RUNS = [
  { suite: 'conformance-0.1', version: '2025-11-25', file: '0.1-2025-11-25', least: 26 },
  { suite: 'conformance-0.2', version: '2025-11-25', file: '0.2-2025-11-25', least: 62 },
  { suite: 'conformance-0.2', version: '2026-07-28', file: '0.2-2026-07-28', least: 118 },
];

for (const { suite, version, file, least } of RUNS) {
  test(`${suite} for ${version}: every scenario passes, or fails for a reason that is written down`, async (t) => {
    const found = await passes(suite, ['--suite', 'all', '--spec-version', version], file);
    t.diagnostic(`${found.passed} checks passed, ${found.failed} failed as expected`);
    assert.ok(found.passed >= least, `${found.passed} checks passed, fewer than the ${least} that have`);
  });
}

// Extensions belong to no version of the specification, so the suite runs them by name only.
const TASKS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
];

for (const scenario of TASKS) {
  test(`the extension for tasks: ${scenario}`, async () => {
    const choice = ['--scenario', scenario, '--spec-version', '2026-07-28', '--force'];
    await passes('conformance-0.2', choice, 'tasks');
  });
}

test('a client that listens is told of new tools, while they change', async () => {
  const changing = copyTools('tests/mcp/conformance/tools');
  const live = await startDeck(SETTINGS, { tools: changing.folder, kb: join(pack, 'kb'), options: ['--watch'] });
  let count = 0;
  const change = () => appendFileSync(join(changing.folder, 'greet', 'guide.md'), `\nChange ${(count += 1)}.\n`);
  const timer = setInterval(change, 400);
  try {
    // The suite waits for a second and a half and for two messages, which is by luck enough for the prompts: their news come
    // right after those of the tools, and the server's own tests see them.
    const choice = ['--scenario', 'server-stateless', '--spec-version', '2026-07-28'];
    const isTold = ({ faults }) => !faults.some((fault) => fault.includes('tools-list-changed'));
    const runs = [];
    while (!(runs.length && isTold(runs.at(-1))) && runs.length < 4) {
      runs.push(await conformance('conformance-0.2', `${live.url}/mcp`, choice, expected('changes')));
    }
    assert.ok(isTold(runs.at(-1)), report(runs.at(-1)));
  } finally {
    clearInterval(timer);
    await live.stop();
    changing.remove();
  }
});

test('every expected failure has a reason, and stands in its file once', () => {
  for (const file of readdirSync(join(pack, 'expected-failures'))) {
    const entries = readExpected(join(pack, 'expected-failures', file));
    for (const { name, reason } of entries) assert.ok(reason.length > 20, `${file}: ${name} has no reason`);
    const names = entries.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length, `${file} has an entry twice`);
  }
});

test('no fixture has its name in the product', () => {
  const ids = readdirSync(join(pack, 'tools')).map((folder) => folder.replaceAll('-', '_'));
  // The others are English words.
  const names = new RegExp(`\\b(${ids.filter((id) => id.includes('_')).join('|')})\\b|test://`);
  const repository = fileURLToPath(new URL('../../', import.meta.url));
  const files = globSync(['crates/*/src/**/*.rs', 'tools/*/*.{js,rs,json,md}', 'prompts/*'], { cwd: repository });
  assert.ok(files.length > 500, `only ${files.length} files were read`);
  const named = files.filter((file) => names.test(readFileSync(join(repository, file), 'utf8')));
  assert.deepEqual(named, []);
});
