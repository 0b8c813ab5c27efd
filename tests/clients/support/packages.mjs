// The packages under test. Each major is installed in a folder of its own; DECK_PACKAGES says which one is meant.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = process.env.DECK_PACKAGES;
if (!folder) throw new Error('DECK_PACKAGES is not set: run scripts/test-clients');

/** Loads a package, with the version that was loaded. */
export async function load(name) {
  const at = join(folder, 'node_modules', name);
  const { version, exports } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'));
  return { version, ...(await import(pathToFileURL(join(at, entry(exports['.']))))) };
}

/** Loads one file of a package, for packages whose parts are files. */
export async function loadFile(name, path) {
  return import(pathToFileURL(join(folder, 'node_modules', name, path)));
}

/** Where a package's program is. */
export function programOf(name, path) {
  return join(folder, 'node_modules', name, path);
}

/** The file that Node would load: of the conditions that it knows, the first one counts. */
function entry(found) {
  if (typeof found === 'string') return found;
  const known = Object.keys(found).find((name) => ['node', 'import', 'default'].includes(name));
  return entry(found[known]);
}
