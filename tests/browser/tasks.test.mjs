// Calls that take long: what they report while they run, and tasks in the background that a user can cancel.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, has, says } from './support/soon.mjs';

const definition = (toolId, more) => ({
  toolId,
  version: '1.0.0',
  description: `Builds a report step by step (${toolId}). Use it when a report is wanted.`,
  category: 'utility',
  sideEffects: 'none',
  idempotent: true,
  requiresConfirmation: false,
  allowedModes: ['text', 'voice'],
  latencyBudgetMs: 2000,
  parameters: {
    type: 'object',
    additionalProperties: false,
    required: ['steps'],
    properties: { steps: { type: 'integer', minimum: 1, description: 'How many steps.' } },
  },
  ...more,
});

const handler = `export async function execute({ args, context }) {
  for (let step = 1; step <= args.steps; step += 1) {
    context.progress(\`step \${step} of \${args.steps}\`);
    context.emit({ chapters: step });
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
      context.signal.addEventListener('abort', resolve, { once: true });
    });
    context.signal.throwIfAborted();
  }
  return { ok: true, data: { chapters: args.steps, title: 'The finished report' } };
}
`;

function writeTools(folder) {
  const tools = [
    ['report-build', definition('report_build', { execution: 'background' })],
    ['report-draft', definition('report_draft', { timeoutMs: 60_000, description: 'Drafts a page while you wait.' })],
  ];
  for (const [name, schema] of tools) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'schema.json'), JSON.stringify(schema));
    writeFileSync(join(folder, name, 'guide.md'), '# Report\n\nBuilds a report. Use it when a report is wanted.\n');
    writeFileSync(join(folder, name, 'handler.js'), handler);
  }
}

/** The model does what the test's script says, in every conversation anew. */
const script = {
  order: 'conversation',
  replies: [
    { calls: [{ name: 'report_build', arguments: { steps: 1000 } }] },
    { text: 'I have started the report.' },
    { calls: [{ name: 'report_build', arguments: { steps: 8 } }] },
    { text: 'I have started a short one.' },
    { text: 'Here it is.' },
  ],
};
const draft = {
  order: 'conversation',
  replies: [{ calls: [{ name: 'report_draft', arguments: { steps: 12 } }] }, { text: 'The draft is done.' }],
};

let folder;
let browser;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quarterdeck-tasks-'));
  writeTools(join(folder, 'tools'));
  writeFileSync(join(folder, 'script.json'), JSON.stringify(script));
  writeFileSync(join(folder, 'draft.json'), JSON.stringify(draft));
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const start = (name) =>
  startDeck({ QUARTERDECK_TEXT__REHEARSAL__SCRIPT: join(folder, name) }, { tools: join(folder, 'tools') });

test('a long task shows its progress, can be cancelled, and another one ends on its card', async () => {
  const deck = await start('script.json');
  try {
    const { page, by, ask, leave } = await openPage(browser, deck);
    await says((await ask('Build the report')).locator('.words'), /started the report/);
    const first = by('tool-card').first();
    await has(first, 'data-state', 'background');
    await says(first.locator('.tool-state'), /step \d+ of 1000/);
    await first.locator('summary').click();
    await says(first.locator('.tool-body'), /So far[^]*chapters/i);
    await by('task-cancel').click();
    await has(first, 'data-state', 'cancelled');
    await says(first.locator('.tool-state'), /cancelled/);
    await counts(by('task-cancel'), 0);

    await ask('Then a short one');
    const second = by('tool-card').nth(1);
    await has(second, 'data-state', 'background');
    // A page that is opened again finds the task where it is.
    await page.reload();
    await has(by('tool-card').nth(1), 'data-state', 'done');
    await by('tool-card').nth(1).locator('summary').click();
    await says(by('tool-card').nth(1).locator('.tool-body'), /The finished report/);
    await ask('And?');
    await counts(by('tool-card'), 2, 'the outcome is shown once');
    await has(by('tool-card').nth(1), 'data-state', 'done');
    await leave();
  } finally {
    await deck.remove();
  }
});

test('a call shows partial results while the user waits for it', async () => {
  const deck = await start('draft.json');
  try {
    const { by, say, answer, leave } = await openPage(browser, deck);
    await say('Draft a page');
    const card = by('tool-card').first();
    await says(card.locator('.tool-state'), /step \d+ of 12/);
    await card.locator('summary').click();
    await says(card.locator('.tool-body'), /So far[^]*chapters/i);
    await says((await answer()).locator('.words'), /The draft is done/);
    await has(card, 'data-state', 'done');
    await leave();
  } finally {
    await deck.remove();
  }
});

test('an operator sees a task on the deck and cancels it', async () => {
  const deck = await start('script.json');
  try {
    const { page, by, ask, leave } = await openPage(browser, deck);
    await ask('Build the report');
    await has(by('tool-card').first(), 'data-state', 'background');
    const operator = await page.context().newPage();
    await operator.goto(`${deck.url}/deck`);
    const row = operator.getByTestId('task');
    await says(row, /report_build[^]*running/);
    await operator.getByTestId('cancel-task').click();
    await says(operator.locator('qd-deck-tasks .notice'), /told to stop/);
    await has(by('tool-card').first(), 'data-state', 'cancelled');
    await has(row, 'data-status', 'cancelled');
    await leave();
  } finally {
    await deck.remove();
  }
});

test('a task that is killed with its server goes on after a restart', async () => {
  const deck = await start('script.json');
  try {
    const { by, ask, leave } = await openPage(browser, deck, { expects: [/Failed to load resource|ERR_CONNECTION/] });
    await ask('Build the report');
    const card = by('tool-card').first();
    await says(card.locator('.tool-state'), /step \d+ of 1000/);
    await deck.kill();
    await deck.start();
    await says(card.locator('.tool-state'), /step \d+ of 1000/);
    await by('task-cancel').click();
    await has(card, 'data-state', 'cancelled');
    await leave();
  } finally {
    await deck.remove();
  }
});
