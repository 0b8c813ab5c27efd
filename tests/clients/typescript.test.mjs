// Our eraser of types beside Node's own, and the values of TypeScript's own compiler.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const folder = new URL('typescript/', import.meta.url);
const program = process.env.DECK_ERASE;

const erase = (path) => execFileSync(program, [path], { encoding: 'utf8' });
const load = (text) => import(`data:text/javascript,${encodeURIComponent(text)}`);
// Node puts none before a template, and so joins lines that TypeScript does not.
const withoutSemicolons = (text) => text.replaceAll(';', ' ');

for (const name of readdirSync(folder)) {
  test(`${name} becomes the JavaScript that Node and TypeScript make of it`, async () => {
    const path = new URL(name, folder).pathname;
    const text = erase(path);
    assert.equal(withoutSemicolons(text), withoutSemicolons(stripTypeScriptTypes(readFileSync(path, 'utf8'))));
    const module = await load(text);
    assert.deepEqual(module.default, module.expected);
  });
}

test('what Node cannot strip is refused with its place', (context) => {
  const temporary = mkdtempSync(join(tmpdir(), 'typescript-'));
  context.after(() => rmSync(temporary, { recursive: true }));
  const path = join(temporary, 'handler.ts');
  for (const source of ['enum A { B }', 'namespace A { export const b = 1 }', 'class A { constructor(public b) {} }', 'import a = b.c']) {
    assert.throws(() => stripTypeScriptTypes(source), { code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' }, source);
    writeFileSync(path, `\n  ${source}`);
    const { status, stderr } = spawnSync(program, [path], { encoding: 'utf8' });
    assert.equal(status, 1, source);
    assert.match(stderr, /^.*handler\.ts:2:\d+: .*; /, source);
  }
});
