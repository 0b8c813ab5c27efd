// A WAV file that is spoken into the browser, made by a speech synthesiser.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes one: what is said, each with the seconds of silence before it. Afterwards it is silent for a while. */
export function speak(...sayings) {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-voice-'));
  const pieces = sayings.map(([silence, words], place) => {
    const [raw, padded] = [join(folder, `raw-${place}.wav`), join(folder, `${place}.wav`)];
    execFileSync('espeak-ng', ['-w', raw, words]);
    execFileSync('sox', [raw, padded, 'pad', String(silence), '0']);
    return padded;
  });
  const file = join(folder, 'microphone.wav');
  execFileSync('sox', [...pieces, file, 'pad', '0', '60']);
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
