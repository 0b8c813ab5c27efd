// A server that follows its folders: what is saved is in the next answer, and what is broken is shown in a corner.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { installed, openPage, startBrowser } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { has, says, soon } from './support/soon.mjs';

const axe = readFileSync(installed('axe-core/axe.min.js'), 'utf8');

const definition = {
  toolId: 'tide_table',
  version: '1.0.0',
  description: 'Says how high the water is. Use it when someone asks for the tide.',
  category: 'utility',
  sideEffects: 'none',
  idempotent: true,
  requiresConfirmation: false,
  allowedModes: ['text', 'voice'],
  latencyBudgetMs: 500,
  parameters: {
    type: 'object',
    additionalProperties: false,
    required: ['harbour'],
    properties: { harbour: { type: 'string', maxLength: 80, description: 'Which harbour.' } },
  },
};
const handler = (level) => `export function execute() { return { ok: true, data: { level: '${level}' } }; }\n`;
const script = {
  order: 'process',
  atEnd: 'again',
  replies: [{ calls: [{ name: 'tide_table', arguments: { harbour: 'Bergen' } }] }, { text: 'That is the tide.' }],
};

let folder;
let browser;
let deck;
const save = (text) => writeFileSync(join(folder, 'tools/tide-table/handler.js'), text);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quarterdeck-watch-'));
  mkdirSync(join(folder, 'tools/tide-table'), { recursive: true });
  writeFileSync(join(folder, 'tools/tide-table/schema.json'), JSON.stringify(definition));
  writeFileSync(join(folder, 'tools/tide-table/guide.md'), '# Tide\n\nSays the tide. Use it when asked.\n');
  writeFileSync(join(folder, 'script.json'), JSON.stringify(script));
  save(handler('low water'));
  browser = await startBrowser();
  const settings = { QUARTERDECK_TEXT__REHEARSAL__SCRIPT: join(folder, 'script.json') };
  deck = await startDeck(settings, { tools: join(folder, 'tools'), flags: ['--watch'] });
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Asks, and gives what the card of the call shows. */
async function level(user, count) {
  await user.ask('How high is the water?');
  const card = user.by('tool-card').nth(count);
  await has(card, 'data-state', 'done');
  await card.locator('summary').click();
  return card.locator('.tool-body');
}

test('a save is in the next message, a broken one is in the corner until it is corrected', async () => {
  const user = await openPage(browser, deck);
  const corner = user.by('watch-corner');
  await corner.waitFor({ state: 'attached' });
  await says(await level(user, 0), /low water/);

  save(handler('high water'));
  await says(corner, /Live: registry[^]*tide_table changed/);
  await says(await level(user, 1), /high water/);
  await soon(async () => assert.equal(await corner.isVisible(), false, 'what is live need not be shown for long'));

  save('export const nothing = 1;\n');
  await says(corner, /Not live: tools[^]*does not export/);
  await corner.locator('summary').click();
  await says(corner, /tide-table\/handler\.js/);
  assert.equal(await corner.getAttribute('role'), 'status');
  await user.page.evaluate(axe);
  const { violations } = await user.page.evaluate(() => globalThis.axe.run('qd-watch', { resultTypes: ['violations'] }));
  assert.deepEqual(violations.map((violation) => violation.id), []);
  await corner.locator('summary').click();
  await says(await level(user, 2), /high water/);
  assert.equal(await corner.isVisible(), true, 'it stays until the problem is gone');

  // A page that is opened now is told, too.
  await user.page.reload();
  await says(corner, /Not live/);
  save(handler('slack water'));
  await says(corner, /Live: registry/);
  await says(await level(user, 3), /slack water/);
  await user.leave();
});

test('without --watch there is no corner', async () => {
  save(handler('low water'));
  const quiet = await startDeck({}, { tools: join(folder, 'tools') });
  try {
    const user = await openPage(browser, quiet);
    await user.by('composer').waitFor();
    assert.equal(await user.by('watch-corner').count(), 0);
    await user.leave();
  } finally {
    await quiet.remove();
  }
});
