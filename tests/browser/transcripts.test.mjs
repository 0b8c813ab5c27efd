// What operators read of conversations: an opening is in the audit log, and a question without an answer is exported.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { startBrowser, TIMEOUT_MS } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { counts, says } from './support/soon.mjs';

const QUESTION = 'What is our refund policy for cancelled orders?';
const kept = { QUARTERDECK_TRANSCRIPTS__KEEP: 'on', QUARTERDECK_TRANSCRIPTS__KEY: Buffer.alloc(32, 1).toString('base64') };
let deck;
let silent;
let browser;

before(async () => {
  [deck, silent, browser] = await Promise.all([startDeck(kept), startDeck(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await Promise.all([deck?.remove(), silent?.remove()]);
});

async function operate(at, to = deck, expects = []) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, timezoneId: 'UTC', acceptDownloads: true });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  await page.goto(`${to.url}/deck${at}`);
  const leave = async () => {
    await context.close();
    assert.deepEqual(faults.filter((fault) => !expects.some((pattern) => pattern.test(fault))), []);
  };
  return { page, by: (name) => page.getByTestId(name), leave };
}

async function say(message, to = deck) {
  const response = await fetch(`${to.url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  });
  return /"sessionId":"([^"]+)"/.exec(await response.text())[1];
}

test('a conversation is read as one, and its opening is in the audit log', async () => {
  const session = await say('Who designed the Fram?');
  const { by, leave } = await operate(`#sessions/${session}`);
  await by('read-conversation').click();
  const turn = by('conversation-turn').first();
  await says(turn, /User\s+Who designed the Fram\?/);
  await says(turn, /Agent\s[\s\S]*Colin Archer/);
  await turn.getByTestId('line').filter({ hasText: 'kb_search' }).first().waitFor();
  const opening = by('conversation').getByTestId('line').filter({ hasText: 'opened a conversation' });
  await counts(opening, 1);
  await leave();
  const audit = await (await fetch(`${deck.url}/api/deck/audit?event=operator`)).json();
  const lines = audit.lines.filter((line) => line.action === 'open_conversation' && line.sessionId === session);
  assert.equal(lines.length, 1);
  assert.match(lines[0].by, /^deck /);
});

test('a question without an answer is found and exported as a record and as a case', async () => {
  await say(QUESTION);
  await say('Who was Colin Archer?');
  const { page, by, leave } = await operate('#unanswered');
  const row = by('unanswered').filter({ hasText: QUESTION });
  await says(row, /no evidence/);
  await counts(by('unanswered'), 1);
  await row.getByRole('checkbox').check();
  const save = async (button) => {
    const [download] = await Promise.all([page.waitForEvent('download'), by(button).click()]);
    return [download.suggestedFilename(), readFileSync(await download.path(), 'utf8')];
  };
  const [recordsName, records] = await save('export-records');
  assert.equal(recordsName, 'unanswered.jsonl');
  assert.equal(JSON.parse(records).title, QUESTION);
  const [casesName, cases] = await save('export-cases');
  assert.equal(casesName, 'unanswered.case.json');
  assert.equal(JSON.parse(cases)[0].said, QUESTION);
  await leave();
});

test('a server that keeps nothing says so, and how to switch it on', async () => {
  const session = await say('Who designed the Fram?', silent);
  const { page, by, leave } = await operate('#unanswered', silent, [/404/]);
  await says(by('not-kept'), /not kept on this server.*keep = "on"/s);
  await page.goto(`${silent.url}/deck#sessions/${session}`);
  await by('read-conversation').click();
  await says(page.locator('qd-deck-sessions .notice').first(), /Conversations are not kept on this server/);
  await leave();
});
