// The operators' page: what they see, what they do, and who they must be.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { installed, TIMEOUT_MS, startBrowser } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, has, says, soon } from './support/soon.mjs';

const axe = readFileSync(installed('axe-core/axe.min.js'), 'utf8');
let deck;
let browser;

before(async () => {
  [deck, browser] = await Promise.all([startDeck({ QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000' }), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
});

/** Opens the deck. Whatever goes wrong in the page fails the test that closes it. */
async function operate({ at = '', to = deck, expects = [], ...settings } = {}) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, timezoneId: 'UTC', ...settings });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  await page.goto(`${to.url}/deck${at}`);
  const by = (name) => page.getByTestId(name);
  const leave = async () => {
    await context.close();
    assert.deepEqual(
      faults.filter((fault) => !expects.some((pattern) => pattern.test(fault))),
      [],
      'the page has nothing to complain about',
    );
  };
  return { page, by, leave };
}

/** A user who writes something to the agent, without a page. */
async function user() {
  let cookie = '';
  const post = async (path, body) => {
    const response = await fetch(`${deck.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    });
    cookie ||= response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    return response.text();
  };
  return { say: (message) => post('/api/chat', { id: 'chat', message }) };
}

const sessionOf = (stream) => /"sessionId":"([^"]+)"/.exec(stream)[1];

test('tools are shown with their health, and a tool has its charts', async () => {
  await (await user()).say('Who designed the Fram?');
  const { page, by, leave } = await operate();
  const row = by('tool-row').filter({ hasText: 'kb_search' });
  await row.waitFor();
  await says(by('glance'), /rehearsal\/built-in/);
  await says(by('glance'), /Registry\s+\d+\.\d+\.[0-9a-f]+/);
  await soon(async () => {
    const cells = await row.locator('td').allInnerTexts();
    assert.ok(Number(cells[1]) >= 1, `calls: ${cells}`);
    assert.equal(cells[2], '0 %');
    assert.match(cells[4], / m?s$/);
  });
  await says(by('chart-heading'), 'All tools');
  await counts(by('charts').locator('svg'), 3);
  await row.getByRole('button', { name: 'kb_search' }).click();
  await says(by('chart-heading'), 'kb_search');
  await has(row.getByRole('button'), 'aria-pressed', 'true');
  const latency = by('charts').locator('qd-chart').nth(1);
  await has(latency.locator('[role=img]'), 'aria-label', /Latency of kb_search\. Highest: p95 /);
  await latency.locator('[role=img]').focus();
  await page.keyboard.press('Home');
  const moment = /\d\d:\d\d:\d\d.*p95 .*p50 /s;
  await says(latency.locator('.chart-readout'), moment, 'arrow keys go through the moments');
  await by('range').selectOption('days');
  await by('charts').locator('svg').first().waitFor();
  await leave();
});

test('calls appear as they end, and stay while one reads', async () => {
  const { by, leave } = await operate({ at: '#live' });
  await by('live-state')
    .filter({ hasText: /^connected$/ })
    .waitFor();
  const { say } = await user();
  await say('Who designed the Fram?');
  const lines = by('live').getByTestId('line');
  await lines.filter({ hasText: 'kb_search done' }).first().waitFor();
  assert.deepEqual([...new Set(await lines.evaluateAll((all) => all.map((line) => line.dataset.event)))], ['tool_execution']);
  await by('live-pause').click();
  const before = await lines.count();
  await say('Who was Colin Archer?');
  await by('live-pause').click();
  await lines.nth(before).waitFor();
  await lines.first().locator('summary').click();
  await says(lines.first().locator('pre'), /"toolId": "kb_/);
  await leave();
});

test('a line that is read stays where it is, and what came meanwhile appears when it is closed', async () => {
  const { by, leave } = await operate({ at: '#live' });
  await by('live-state')
    .filter({ hasText: /^connected$/ })
    .waitFor();
  const { say } = await user();
  await say('Who designed the Fram?');
  const lines = by('live').getByTestId('line');
  await lines.first().locator('summary').click();
  const before = await lines.count();
  await say('Who was Colin Archer?');
  await by('live-state')
    .filter({ hasText: /\d+ new$/ })
    .waitFor();
  await counts(lines, before);
  await lines.first().locator('summary').click();
  await soon(async () => assert.ok((await lines.count()) > before));
  await says(by('live-state'), 'connected');
  await leave();
});

for (const view of ['tools', 'sessions', 'unanswered', 'audit', 'registry', 'mcp', 'nodes', 'playground']) {
  test(`the view ${view} is there when the server is, also if it was not at first`, async () => {
    const { page, by, leave } = await operate({ at: '#live', expects: [/ERR_FAILED/] });
    await by('live-state')
      .filter({ hasText: /^connected$/ })
      .waitFor();
    await page.route('**/api/deck/**', (route) => route.abort());
    await page.evaluate((view) => (location.hash = view), view);
    await page.locator(`#panel-${view}`).getByText('The server cannot be reached. Retrying…').waitFor();
    await page.unroute('**/api/deck/**');
    await page.locator(`#panel-${view} .notice:empty`).waitFor({ state: 'attached' });
    await leave();
  });
}

test('an address that means nothing leads to the tools', async () => {
  const { by, leave } = await operate({ at: '#%' });
  await by('tool-row').first().waitFor();
  await leave();
});

test('sessions that are not shown are counted', async () => {
  await (await user()).say('Who designed the Fram?');
  const { page, by, leave } = await operate();
  await page.route('**/api/deck/sessions?*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), matching: 250, lookedAt: 300, isComplete: false } });
  });
  await by('tab-sessions').click();
  await says(by('sessions-rest'), /^Showing the latest \d+ of 250; 300 scanned\./);
  await leave();
});

test('a session is told turn by turn, and ended when the operator means it', async () => {
  const { say } = await user();
  const id = sessionOf(await say('Who designed the Fram?'));
  await say('Book a meeting tomorrow at 10:00 with ann@example.com');
  const { page, by, leave } = await operate({ at: '#sessions' });
  await by('session-row').first().getByRole('link').waitFor();
  await page.locator(`a[href="#sessions/${id}"]`).click();
  await by('timeline').waitFor();
  await soon(async () => {
    const turns = await by('timeline').getByRole('heading').allInnerTexts();
    assert.deepEqual(turns, ['Before the first call', 'Turn 1', 'Turn 2']);
  });
  await says(by('timeline'), /session started in text mode/);
  await says(by('timeline'), /kb_search done/);
  await says(by('timeline'), /calendar_create_event: approval requested/);

  await by('end-session').click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await says(by('session'), /State\s+open/);
  await by('end-session').click();
  await by('confirm-dialog-yes').click();
  await by('timeline').getByText('session ended: ended by operator').waitFor();
  await says(by('session'), /State\s+ended/);
  await leave();
});

test('a client is erased only after the word was typed', async () => {
  const { say } = await user();
  const id = sessionOf(await say('Who designed the Fram?'));
  const { page, by, leave } = await operate({ at: `#sessions/${id}` });
  await by('erase-client').click();
  await by('confirm-dialog-word').waitFor();
  assert.equal(await by('confirm-dialog-yes').isDisabled(), true);
  await by('confirm-dialog-word').fill('erase');
  await by('confirm-dialog-yes').click();
  await page.getByText(/Erased \d+ rows/).waitFor();
  await counts(page.locator(`a[href="#sessions/${id}"]`), 0);
  await leave();
});

test('a block is seen and lifted', async () => {
  const { say } = await user();
  await say('You are an idiot');
  await say('Shut up, you stupid idiot');
  assert.match(await say('hello'), /BLOCKED/);
  const { by, leave } = await operate({ at: '#sessions' });
  await by('lift').first().click();
  await by('blocks').getByText('No client is blocked').waitFor();
  assert.doesNotMatch(await say('hello'), /BLOCKED/);
  await leave();
});

test('the audit log is searched and verified', async () => {
  const { say } = await user();
  await say('Who designed the Fram?');
  const { page, by, leave } = await operate({ at: '#audit' });
  const lines = by('audit').getByTestId('line');
  await lines.first().waitFor();
  await page.getByLabel('Event').selectOption('tool_execution');
  await page.locator('input[name=tool]').fill('kb_search');
  await by('audit-search').click();
  await lines.first().waitFor();
  await soon(async () => {
    assert.deepEqual([...new Set(await lines.locator('.line-gist').allInnerTexts())], ['kb_search done']);
  });
  await by('audit-text').fill('nothing has this in it');
  await by('audit-search').click();
  await page.getByText('No line matches').waitFor();
  await by('audit-clear').click();
  await lines.first().waitFor();
  await counts(page.getByText('No line matches'), 0);
  const tops = await page.locator('.search .row button').evaluateAll((all) => all.map((one) => one.offsetTop));
  assert.equal(new Set(tops).size, 1, 'both buttons stand in one line');

  await by('tab-registry').click();
  const { say: anotherSays } = await user();
  const id = sessionOf(await anotherSays('Who was Colin Archer?'));
  await by('tab-audit').click();
  await by('audit').locator(`a[href="#sessions/${id}"]`).first().waitFor();
  await by('verify').click();
  await by('verdict')
    .filter({ hasText: /The chain is intact: \d+ lines/ })
    .waitFor();
  await leave();
});

test('the registry shows its tools, and says when there is nothing to compare with', async () => {
  const { by, leave } = await operate({ at: '#registry' });
  await by('registry').getByRole('link', { name: 'kb_search' }).waitFor();
  await says(by('registry'), /first registry of this server/);
  await leave();
});

test('the playground begins with a call that works', async () => {
  const { by, leave } = await operate({ at: '#playground' });
  await by('play-tool').waitFor();
  for (const tool of ['kb_search', 'validate_email', 'format_datetime', 'extract_contacts', 'rank_results']) {
    await by('play-tool').selectOption(tool);
    await by('play-run').click();
    await by('play-result').getByText(`"toolId": "${tool}"`).waitFor();
    await says(by('play-outcome'), 'Done', tool);
  }
  await leave();
});

test('the playground shows what a handler threw, where, and what to do', async () => {
  const tools = mkdtempSync(join(tmpdir(), 'quarterdeck-tools-'));
  const definition = {
    toolId: 'broken',
    version: '1.0.0',
    description: 'Reads a key.',
    category: 'utility',
    sideEffects: 'none',
    idempotent: true,
    requiresConfirmation: false,
    allowedModes: ['text'],
    latencyBudgetMs: 1000,
    parameters: { type: 'object', additionalProperties: false, properties: {} },
  };
  const handler = ['export async function execute() {', '  const key = process.env.API_KEY;', '  return { ok: true, data: key };', '}', ''];
  mkdirSync(join(tools, 'broken'));
  writeFileSync(join(tools, 'broken/schema.json'), JSON.stringify(definition));
  writeFileSync(join(tools, 'broken/guide.md'), '# Broken\n\nReads a key. Only for tests.\n');
  writeFileSync(join(tools, 'broken/handler.js'), handler.join('\n'));
  const broken = await startDeck({}, { tools });
  try {
    const { page, by, leave } = await operate({ at: '#playground/broken', to: broken });
    await by('play-tool').waitFor();
    await by('play-run').click();
    await by('play-outcome').filter({ hasText: 'Failed: internal' }).waitFor();
    const shown = await by('play-exception').locator('pre').innerText();
    assert.equal(
      shown,
      [
        'ReferenceError: process is not defined',
        '  --> broken/handler.js:2:15',
        '2 |   const key = process.env.API_KEY;',
        '  |               ^',
        '    at execute (broken/handler.js:2:15)',
      ].join('\n'),
    );
    await says(by('play-hint'), /^Hint: handlers have no process and no environment: declare a key under `secrets`/);
    const envelope = await by('play-result').locator('pre').last().innerText();
    assert.match(envelope, /"type": "INTERNAL"/);
    assert.doesNotMatch(envelope, /handler\.js|process/);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    assert.deepEqual(
      violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id),
      [],
    );
    await page.setViewportSize({ width: 340, height: 640 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'nothing sticks out');
    await leave();
  } finally {
    await broken.remove();
    rmSync(tools, { recursive: true, force: true });
  }
});

test('the playground runs a call through the gates, and asks before it writes', async () => {
  const { page, by, leave } = await operate({ at: '#playground/format_datetime' });
  await by('play-tool').waitFor();
  await page.waitForFunction(() => document.querySelector('#play-tool').value === 'format_datetime');
  await by('play-args').fill('{ nonsense');
  await by('play-run').click();
  await says(page.locator('#play-fault'), /JSON|property/i);
  await by('play-args').fill('{ "datetime": "yesterday" }');
  await by('play-run').click();
  await by('play-outcome').filter({ hasText: 'Failed: validation' }).waitFor();
  const gates = by('play-result').getByTestId('gate');
  await counts(gates, 11);
  await has(gates.filter({ hasText: 'arguments' }), 'data-verdict', 'refused');
  await has(gates.last(), 'data-verdict', 'not_reached');

  await by('play-tool').selectOption('calendar_create_event');
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  const meeting = {
    title: 'Tea',
    start_time: `${tomorrow}T15:00:00Z`,
    end_time: `${tomorrow}T15:30:00Z`,
    attendees: ['ann@example.com'],
  };
  await by('play-args').fill(JSON.stringify(meeting));
  await by('play-run').click();
  await by('play-outcome').filter({ hasText: 'confirmation required' }).waitFor();
  await says(by('play-result'), /Approval needed: Book “Tea”/);
  await by('play-approve').check();
  await by('play-run').click();
  await by('play-outcome')
    .filter({ hasText: /^Done$/ })
    .waitFor();
  await has(gates.last(), 'data-verdict', 'approved');
  await leave();
});

test('where the server wants its token, nothing is shown without it', async () => {
  const guarded = await startDeck({ QUARTERDECK_ADMIN_TOKEN: 'open-sesame-open-sesame' });
  try {
    const { page, by, leave } = await operate({ to: guarded, expects: [/403/] });
    await by('token').fill('a-wrong-token-a-wrong-token');
    await by('open').click();
    await page.getByText('Wrong token.').waitFor();
    await counts(by('tool-row'), 0);
    await by('token').fill('open-sesame-open-sesame');
    await by('open').click();
    await by('tool-row').first().waitFor();
    await page.reload();
    await by('tool-row').first().waitFor();
    assert.equal(await page.evaluate(() => localStorage.length), 0, 'it is kept in this tab alone');
    await by('forget-token').click();
    await by('token').waitFor();
    await leave();
  } finally {
    await guarded.remove();
  }
});

test('tabs are walked with the keyboard, and an address leads to its view', async () => {
  const { page, by, leave } = await operate();
  // An address is followed a moment after it has changed.
  const selected = (name) => page.locator(`#tab-${name}[aria-selected=true]`).waitFor();
  await selected('tools');
  await by('tab-tools').focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'tab-live');
  await selected('live');
  await page.keyboard.press('End');
  await selected('playground');
  await page.keyboard.press('ArrowRight');
  await selected('tools');
  await page.goBack();
  await selected('playground');
  assert.equal(await page.title(), 'Playground · Deck · Quarterdeck');
  await leave();
});

for (const colorScheme of ['light', 'dark']) {
  test(`nothing keeps operators out, ${colorScheme}`, async () => {
    const { say } = await user();
    const id = sessionOf(await say('Who designed the Fram?'));
    const { page, by, leave } = await operate({ colorScheme, reducedMotion: 'reduce' });
    const found = [];
    const look = async (where) => {
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      found.push(
        ...serious.flatMap(({ id, nodes }) => nodes.map((node) => `${where}: ${id} ${node.target} ${node.failureSummary}`)),
      );
    };
    await by('tool-row').first().waitFor();
    await look('tools');
    await by('tab-live').click();
    await by('live-state')
      .filter({ hasText: /^connected$/ })
      .waitFor();
    await say('Who was Colin Archer?');
    await by('live').getByTestId('line').first().waitFor();
    await look('live');
    await page.goto(`${deck.url}/deck#sessions/${id}`);
    await by('timeline').waitFor();
    await look('a session');
    await by('erase-client').click();
    await look('a question');
    await page.keyboard.press('Escape');
    await by('tab-audit').click();
    await by('audit').getByTestId('line').first().locator('summary').click();
    await by('verify').click();
    await by('verdict').filter({ hasText: 'intact' }).waitFor();
    await look('audit');
    await by('tab-registry').click();
    await by('registry').getByRole('link').first().waitFor();
    await look('registry');
    await by('tab-playground').click();
    await by('play-run').click();
    await by('play-outcome').waitFor();
    await look('playground');
    assert.deepEqual(found, []);
    await leave();
  });
}

test('a narrow screen has everything, and nothing sticks out', async () => {
  const { say } = await user();
  const id = sessionOf(await say('Who designed the Fram?'));
  const { page, by, leave } = await operate({ viewport: { width: 340, height: 640 } });
  const sticksOut = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await by('tool-row').first().waitFor();
  assert.equal(await sticksOut(), false, 'tools');
  for (const [at, shown] of [
    [`sessions/${id}`, 'timeline'],
    ['audit', 'audit-search'],
    ['registry', 'registry'],
    ['playground', 'play-run'],
    ['live', 'live-state'],
  ]) {
    await page.evaluate((at) => (location.hash = at), at);
    await by(shown).waitFor();
    assert.equal(await sticksOut(), false, at);
  }
  await leave();
});

const images = fileURLToPath(new URL('../../docs/images/', import.meta.url));

// Taken anew when UPDATE_SCREENSHOTS is 1, which takes two minutes: a chart over time wants time.
test('the pictures of the deck are there', { timeout: 240_000 }, async () => {
  if (process.env.UPDATE_SCREENSHOTS === '1') await take();
  for (const name of ['deck-light.png', 'deck-dark.png']) assert.ok(existsSync(`${images}${name}`), name);
});

async function take() {
  mkdirSync(images, { recursive: true });
  const questions = [
    'Who designed the Fram?',
    'Who was Colin Archer?',
    'How long was the Fram?',
    'Find a time with ann@example.com tomorrow',
    'What time is it?',
  ];
  for (const end = Date.now() + 110_000, began = Date.now(); Date.now() < end;) {
    const { say } = await user();
    // As many as on a busy morning, which come and go.
    const many = 2 + Math.round(2 + 2 * Math.sin((Date.now() - began) / 9_000));
    for (let place = 0; place < many; place += 1) await say(questions[Math.floor(Math.random() * questions.length)]);
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  for (const colorScheme of ['light', 'dark']) {
    const { page, by, leave } = await operate({
      colorScheme,
      reducedMotion: 'reduce',
      viewport: { width: 1000, height: 900 },
      deviceScaleFactor: 1.5,
    });
    await by('tool-row').filter({ hasText: 'kb_search' }).getByRole('button').click();
    await page.mouse.move(0, 0);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${images}deck-${colorScheme}.png` });
    await leave();
  }
}

test('an alarm is shown with what to do, lifted, and on the record', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-rules-'));
  const rules = join(folder, 'alerts.json');
  const when = { kind: 'gauge', series: 'quarterdeck_sessions_active', where: { mode: 'voice' }, below: 1 };
  const rule = { id: 'no_calls', severity: 'critical', summary: 'No user calls', remedy: 'Call a user.', when };
  writeFileSync(rules, JSON.stringify({ rules: [rule] }));
  const other = await startDeck({ QUARTERDECK_ALERTS__RULES_FILE: rules });
  try {
    const { by, leave } = await operate({ to: other });
    await says(by('alarm'), /No user calls[^]*Call a user\./);
    await by('lift-alarm').click();
    await counts(by('lift-alarm'), 0);
    await says(by('alarm'), /lifted/);
    await by('tab-audit').click();
    await says(by('audit'), /an operator lifted an alarm[^]*alarm no_calls:mode=voice fired/);
    await leave();
  } finally {
    await other.remove();
    rmSync(folder, { recursive: true, force: true });
  }
});
