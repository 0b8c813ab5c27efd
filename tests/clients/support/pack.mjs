// Tool folders for one test, in a folder of their own, because a server writes its registry beside them.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../', import.meta.url));

/** Copies folders of tools, named from the repository, into one. */
export function copyTools(...packs) {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-tools-'));
  for (const pack of packs) {
    const isTool = (path) => basename(path) !== 'tool_registry.json';
    cpSync(join(repository, pack), folder, { recursive: true, filter: isTool });
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
