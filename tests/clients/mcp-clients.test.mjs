// MCP clients that are not ours, with the shipped tools: they list, call, approve, deny, watch and cancel.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tea, teatime } from './support/calendar.mjs';
import { startDeck, until } from './support/deck.mjs';
import { approving, closing, decideOn, declining, inspect, tickingNothing, withClient, withSdk } from './support/mcp.mjs';
import { copyTools } from './support/pack.mjs';
import { loadFile } from './support/packages.mjs';

let tools;
let deck;
let url;
/** No two tests book the same day. */
let day = 0;

before(async () => {
  tools = copyTools('tools', 'tests/mcp/clients/tools');
  const settings = {
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '100000',
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_ADDRESS: '100000',
  };
  deck = await startDeck(settings, { tools: tools.folder });
  url = `${deck.url}/mcp`;
});

after(async () => {
  assert.equal(await deck?.stop(), 0, 'the server stops cleanly');
  tools.remove();
});

const CLIENTS = [
  { name: '@modelcontextprotocol/sdk 1', connect: (answer) => withSdk(url, answer) },
  { name: '@modelcontextprotocol/client 2 with the handshake', connect: (answer) => withClient(url, 'legacy', answer) },
  { name: '@modelcontextprotocol/client 2 without sessions', connect: (answer) => withClient(url, { pin: '2026-07-28' }, answer) },
  { name: '@modelcontextprotocol/sdk 1 over a pipe', connect: (answer) => withSdk(pipe(), answer) },
  { name: '@modelcontextprotocol/client 2 over a pipe', connect: (answer) => withClient(pipe(), { pin: '2026-07-28' }, answer) },
];

/** One of the sample records. */
const RECORD = 'kb://public/doc/dead-water';

/** The program that a desktop client starts, which passes everything on to the server. */
function pipe() {
  return { command: process.env.DECK_PROGRAM, args: ['mcp', 'serve', '--url', deck.url] };
}

/** Lines of the audit trail about one tool. */
async function trail(tool) {
  const query = ['audit', 'query', '--data', deck.data, '--tool', tool, '--event', 'tool_execution', '--format', 'json'];
  const { stdout } = await promisify(execFile)(process.env.DECK_PROGRAM, query);
  return stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

/** Whether something is booked at teatime of a day. */
async function isBooked(session, day) {
  const { structuredContent } = await session.call('calendar_get_availability', teatime(day));
  return structuredContent.existing_events.length > 0;
}

/** The page that a result sends the user to. */
function pageIn(result) {
  const page = result.content[0].text.match(/http:\/\/\S+/)?.[0];
  assert.ok(page?.startsWith(`${deck.url}/`), JSON.stringify(result));
  return page;
}

for (const { name, connect } of CLIENTS) {
  test(`${name} lists the tools, with what each of them is`, async () => {
    const session = await connect();
    try {
      const { tools } = await session.client.listTools();
      const named = new Map(tools.map((tool) => [tool.name, tool]));
      const email = named.get('validate_email');
      assert.equal(email.inputSchema.required[0], 'email');
      assert.equal(email.outputSchema.type, 'object');
      assert.equal(email.annotations.readOnlyHint, true);
      const booking = named.get('calendar_create_event');
      assert.equal(booking.annotations.readOnlyHint, false);
      assert.ok(booking.title);
      assert.ok(!named.has('end_voice_session'), 'a tool that is for voice alone is not offered');
      assert.deepEqual((await session.client.listTools()).tools.map(({ name }) => name), [...named.keys()]);
    } finally {
      await session.close();
    }
  });

  test(`${name} calls a tool, and learns from the result what went wrong`, async () => {
    const session = await connect();
    try {
      const good = await session.call('validate_email', { email: 'ann@example.com' });
      assert.equal(good.isError ?? false, false);
      assert.equal(good.structuredContent.valid, true);
      assert.deepEqual(JSON.parse(good.content[0].text), good.structuredContent);
      const wrong = await session.call('validate_email', { mail: 'ann@example.com' });
      assert.equal(wrong.isError, true);
      assert.match(wrong.content[0].text, /email/);
      await assert.rejects(session.call('no_such_tool', {}), { code: -32602 });
    } finally {
      await session.close();
    }
  });

  test(`${name} books when the user approves, once`, async () => {
    const at = (day += 1);
    const questions = [];
    const session = await connect((question) => (questions.push(question), approving(question)));
    try {
      const booked = await session.call('calendar_create_event', tea(at));
      assert.equal(booked.isError ?? false, false, JSON.stringify(booked));
      assert.equal(questions.length, 1);
      assert.match(questions[0].message, /Tea/);
      assert.ok(await isBooked(session, at));
    } finally {
      await session.close();
    }
  });

  for (const [what, answer] of Object.entries({ 'says no': declining, 'closes the question': closing, 'ticks nothing': tickingNothing })) {
    test(`${name} books nothing when the user ${what}`, async () => {
      const at = (day += 1);
      const session = await connect(answer);
      try {
        const refused = await session.call('calendar_create_event', tea(at));
        assert.equal(refused.isError, true, JSON.stringify(refused));
        assert.equal(await isBooked(session, at), false);
      } finally {
        await session.close();
      }
    });
  }

  test(`${name} is told where to approve when it cannot ask its user`, async () => {
    const session = await connect();
    try {
      for (const [decision, isDone] of [['approve', true], ['deny', false]]) {
        const at = (day += 1);
        const refused = await session.call('calendar_create_event', tea(at));
        assert.equal(refused.isError, true);
        assert.equal(await isBooked(session, at), false);
        const decided = await decideOn(pageIn(refused), decision);
        assert.equal(decided.status, 200, decided.html);
        assert.equal(await isBooked(session, at), false, 'the page itself books nothing');
        const again = await session.call('calendar_create_event', tea(at));
        assert.equal(again.isError ?? false, !isDone, JSON.stringify(again));
        assert.equal(await isBooked(session, at), isDone);
      }
    } finally {
      await session.close();
    }
  });

  test(`${name} reads a record and a guide, and completes an address`, async () => {
    const session = await connect();
    try {
      const { resources } = await session.client.listResources();
      assert.ok(resources.some(({ uri }) => uri === RECORD), JSON.stringify(resources[0]));
      const { contents } = await session.client.readResource({ uri: RECORD });
      assert.match(contents[0].text, /^# Dead water/);
      await assert.rejects(session.client.readResource({ uri: `${RECORD}-not` }), { code: -32602 });
      const { resourceTemplates } = await session.client.listResourceTemplates();
      const ref = { type: 'ref/resource', uri: resourceTemplates[0].uriTemplate };
      const context = { arguments: { namespace: 'public', type: 'doc' } };
      const { completion } = await session.client.complete({ ref, argument: { name: 'slug', value: 'dead' }, context });
      assert.deepEqual(completion.values, ['dead-water']);
      const { messages } = await session.client.getPrompt({ name: 'validate_email' });
      assert.match(messages[0].content.text, /^# /);
    } finally {
      await session.close();
    }
  });

  test(`${name} sees how far a call is`, async () => {
    const session = await connect();
    const seen = [];
    try {
      const { structuredContent } = await session.call('count_slowly', { to: 5 }, { onprogress: (step) => seen.push(step) });
      assert.deepEqual(structuredContent, { counted: 5 });
      assert.ok(seen.length >= 3, JSON.stringify(seen));
      assert.match(seen[0].message, / of 5$/);
      for (const [place, { progress }] of seen.entries()) assert.ok(place === 0 || progress > seen[place - 1].progress);
    } finally {
      await session.close();
    }
  });

  test(`${name} cancels a call, and its handler is stopped`, async () => {
    const session = await connect();
    const earlier = (await trail('count_slowly')).length;
    try {
      const controller = new AbortController();
      const options = { signal: controller.signal, onprogress: () => controller.abort(new Error('enough')) };
      await assert.rejects(session.call('count_slowly', { to: 1_000 }, options));
      const line = await until(async () => (await trail('count_slowly'))[earlier], 'the call has an end in the audit trail', 20_000);
      assert.equal(line.error?.type ?? line.errorType, 'CANCELLED', JSON.stringify(line));
    } finally {
      await session.close();
    }
  });
}

test('a client that has shaken hands is told of new tools', async () => {
  const changing = copyTools('tests/mcp/clients/tools');
  const live = await startDeck({}, { tools: changing.folder, options: ['--watch'] });
  const { ToolListChangedNotificationSchema } = await loadFile('@modelcontextprotocol/sdk', 'dist/esm/types.js');
  const session = await withSdk(`${live.url}/mcp`);
  try {
    let isTold = false;
    session.client.setNotificationHandler(ToolListChangedNotificationSchema, () => (isTold = true));
    const schema = join(changing.folder, 'count-slowly', 'schema.json');
    const text = readFileSync(schema, 'utf8');
    let words;
    // The client opens its stream when it likes, so there is more than one change to tell of.
    for (let count = 1; !isTold && count < 30; count += 1) {
      words = `Counts to a number, with the patience of ${count}.`;
      writeFileSync(schema, text.replace(/"description": "[^"]*"/, `"description": "${words}"`));
      await until(() => isTold, 'the client is told', 1_000).catch(() => {});
    }
    assert.ok(isTold, 'the client is told');
    const listed = async () => (await session.client.listTools()).tools.find(({ name }) => name === 'count_slowly');
    await until(async () => (await listed()).description === words, 'the new words are listed', 20_000);
  } finally {
    await session.close();
    await live.stop();
    changing.remove();
  }
});

test('a desktop client starts the server itself, and books with approval', async () => {
  const data = mkdtempSync(join(tmpdir(), 'quarterdeck-desktop-'));
  const folders = ['--data', data, '--tools', tools.folder, '--kb', fileURLToPath(new URL('../../kb', import.meta.url))];
  const session = await withSdk({ command: process.env.DECK_PROGRAM, args: ['mcp', 'serve', ...folders], cwd: data }, approving);
  try {
    const at = (day += 1);
    const booked = await session.call('calendar_create_event', tea(at));
    assert.equal(booked.isError ?? false, false, JSON.stringify(booked));
    assert.ok(await isBooked(session, at));
  } finally {
    await session.close();
    rmSync(data, { recursive: true, force: true });
  }
});

test('a client that leaves without a word, more often than it may have sessions, is let in again', async () => {
  const open = [];
  try {
    for (let count = 0; count < 40; count += 1) open.push(await withSdk(url));
    for (const session of [open[0], open.at(-1)]) {
      const { structuredContent } = await session.call('validate_email', { email: 'ann@example.com' });
      assert.equal(structuredContent.valid, true);
    }
  } finally {
    await Promise.all(open.map((session) => session.close()));
  }
});

for (const era of ['legacy', 'modern']) {
  test(`the inspector lists and calls, ${era}`, async () => {
    const list = await inspect(url, era, '--method', 'tools/list');
    assert.equal(list.code, 0, list.errors);
    assert.ok(list.result.tools.some(({ name }) => name === 'validate_email'));
    const call = ['--method', 'tools/call', '--tool-name', 'validate_email', '--tool-arg', 'email=ann@example.com'];
    const { code, result, errors } = await inspect(url, era, ...call);
    assert.equal(code, 0, errors);
    assert.equal(result.structuredContent.valid, true);
  });
}

for (const [decision, isDone] of [['approve', true], ['deny', false]]) {
  test(`the inspector, which cannot ask, books after the user has chosen to ${decision}: ${isDone}`, async () => {
    const args = JSON.stringify(tea((day += 1)));
    const call = ['--method', 'tools/call', '--tool-name', 'calendar_create_event', '--tool-args-json', args];
    const refused = await inspect(url, 'modern', ...call);
    const decided = await decideOn(pageIn(refused.result), decision);
    assert.equal(decided.status, 200, decided.html);
    const again = await inspect(url, 'modern', ...call);
    assert.equal(again.result.isError ?? false, !isDone, JSON.stringify(again));
  });
}

test("MCP's client for Python", async () => {
  const script = fileURLToPath(new URL('mcp_test.py', import.meta.url));
  const at = (day += 1);
  const days = [...Array(12).keys()].map((more) => ({ tea: tea(at + more), teatime: teatime(at + more) }));
  day += days.length;
  const python = spawn(join(process.env.DECK_PYTHON, 'python'), [script], {
    env: { ...process.env, DECK_MCP: url, DECK_DATA: deck.data, DECK_DAYS: JSON.stringify(days) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  assert.equal(await new Promise((resolve) => python.on('exit', resolve)), 0);
});
