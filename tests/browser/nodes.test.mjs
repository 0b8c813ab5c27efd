// The page before several nodes, one of which is killed again and again.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, openPage } from './support/browser.mjs';
import { speak } from './support/microphone.mjs';
import { hasDatabase, startBalancer, startDatabase, startNodes } from './support/nodes.mjs';
import { says, soon } from './support/soon.mjs';

const ROUNDS = Number(process.env.NODE_KILLS ?? 10);
const MAX_P95_MS = 2_000;
const isRequired = process.env.QUARTERDECK_REQUIRE_CLIENTS === '1';
const skip = hasDatabase || isRequired ? false : 'there is no PostgreSQL; scripts/postgres installs it';
/** Browsers log every failed attempt. */
const expects = [/ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|WebSocket|502|503/];

/** Until the first of the nodes has put the records into the database and all of them have loaded them. */
const knowsRecords = async ({ url }) => {
  const messages = [{ role: 'user', content: 'Who designed the Fram?' }];
  for (const until = Date.now() + 120_000; ; ) {
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ messages }) });
    if ((await answer.text()).includes('Colin Archer')) return;
    assert.ok(Date.now() < until, 'the records are not there');
    await new Promise((done) => setTimeout(done, 500));
  }
};

let database;
let nodes = [];
let balancer;
let microphone;
let browser;

before(async () => {
  if (skip) return;
  database = await startDatabase();
  nodes = await startNodes(database, ['a', 'b'], { QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '10000' });
  await Promise.all(nodes.map(knowsRecords));
  balancer = await startBalancer(nodes);
  microphone = speak([600, 'Nothing']);
  browser = await startBrowser({ microphone: microphone.file });
});

after(async () => {
  await browser?.close();
  microphone?.remove();
  balancer?.stop();
  await Promise.all(nodes.map((node) => node.remove()));
  await database?.remove();
});

test('a call whose node is killed goes on at another within two seconds', { skip }, async (test) => {
  const { page, by, say, leave } = await openPage(browser, balancer, { expects });
  const readies = [];
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      const message = typeof payload === 'string' ? JSON.parse(payload) : {};
      if (message.type === 'ready') readies.push({ ...message, at: performance.now() });
    }),
  );
  await by('voice-start').click();
  await by('voice-state').filter({ hasText: 'Listening' }).waitFor();
  await say('Who designed the Fram?');
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  const times = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const node = balancer.nodeOfCall();
    const count = readies.length;
    const killed = performance.now();
    await node.kill();
    await soon(() => assert.ok(readies.length > count, 'the call goes on'));
    const ready = readies.at(-1);
    assert.equal(ready.resumed, true, `round ${round}: ${JSON.stringify(ready)}`);
    assert.equal(ready.sessionId, readies[0].sessionId);
    times.push(ready.at - killed);
    await node.start();
  }
  await says(by('voice-state'), /Listening|Speaking/);
  await say('Who designed the Fram?');
  await by('caption').last().filter({ hasText: 'Colin Archer' }).waitFor();
  times.sort((one, other) => one - other);
  const p95 = times[Math.ceil(times.length * 0.95) - 1];
  test.diagnostic(`resumed after ${times.map((time) => Math.round(time)).join(', ')} ms`);
  assert.ok(p95 < MAX_P95_MS, `95 of 100 within ${Math.round(p95)} ms`);
  await leave();
});
