// A page with the AI SDK: its own chat and transport against the running server.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { at, booking, looking } from './support/calendar.mjs';
import { sdk, textOf, toolsOf, visit } from './support/chat.mjs';
import { behind, startDeck, until } from './support/deck.mjs';
import { startPuppet } from './support/puppet.mjs';

let deck;
let puppet;

before(async () => {
  puppet = await startPuppet({
    refuse: (response) => response.writeHead(400).end('{"error":{"message":"no such model"}}'),
  });
  deck = await startDeck(behind(puppet.url));
});

after(async () => {
  const ended = await deck?.stop();
  await puppet?.stop();
  assert.equal(ended, 0, 'the server stops cleanly');
});

const title = `with ai ${sdk.version}: `;

test(`${title}an answer in words`, async () => {
  const { chat, say } = visit(deck);
  const answer = await say('say Good morning to you');
  assert.equal(chat.error, undefined);
  assert.equal(chat.status, 'ready');
  assert.equal(answer.role, 'assistant');
  assert.equal(textOf(answer), 'Good morning to you');
  assert.match(answer.metadata.sessionId, /\S+/);
  assert.deepEqual(answer.metadata.usage, {
    inputTokens: 11,
    outputTokens: 7,
    totalTokens: 18,
    cachedInputTokens: 4,
  });
});

test(`${title}the server remembers the conversation, whatever history the page sends`, async () => {
  const { chat, say } = visit(deck);
  await say('say one');
  chat.messages = [];
  assert.equal(textOf(await say('count')), 'You have said 2 things.');
});

test(`${title}a tool call with its output`, async () => {
  const { say } = visit(deck);
  const answer = await say('call format_datetime {"datetime":"2026-01-13T09:30:00Z","style":"iso"}');
  const [tool] = toolsOf(answer);
  assert.equal(tool.toolName, 'format_datetime');
  assert.equal(tool.state, 'output-available');
  assert.deepEqual(tool.input, { datetime: '2026-01-13T09:30:00Z', style: 'iso' });
  assert.equal(tool.output.ok, true);
  assert.equal(tool.output.data.formatted, '2026-01-13T09:30:00+00:00');
  assert.match(textOf(answer), /Results: .*2026-01-13T09:30:00\+00:00/, 'the model has seen the result');
});

test(`${title}a call that fails tells why, and the model goes on`, async () => {
  const { chat, say } = visit(deck);
  const answer = await say('call format_datetime {"datetime":"yesterday"}');
  const [tool] = toolsOf(answer);
  assert.equal(tool.state, 'output-error');
  assert.match(tool.errorText, /datetime/);
  assert.match(textOf(answer), /Results: /);
  assert.equal(chat.status, 'ready');
});

test(`${title}what the gates said stays in the message, after the call`, async () => {
  const { say } = visit(deck);
  const answer = await say('call format_datetime {"datetime":"yesterday"}');
  const at = answer.parts.findIndex((part) => part.type === 'dynamic-tool');
  const [gates] = answer.parts.slice(at).filter((part) => part.type === 'data-gates');
  assert.equal(gates.data.toolCallId, answer.parts[at].toolCallId);
  assert.equal(gates.data.gates.length, 11);
  assert.deepEqual(gates.data.gates.find(({ gate }) => gate === 'arguments'), {
    gate: 'arguments', verdict: 'refused', note: 'VALIDATION',
  });
  assert.equal(textOf(await say('say still here')), 'still here', 'a page may send the part back');
});

test(`${title}a call that is approved runs, and the same message goes on`, async () => {
  const { chat, data, say } = visit(deck);
  const asked = await say(booking(1));
  assert.equal(toolsOf(asked)[0].state, 'approval-requested');
  const [confirmation] = data.filter((part) => part.type === 'data-confirmation');
  assert.match(confirmation.data.preview, /Book “Tea”/);
  assert.equal(await isBooked(1), false, 'nothing has run before the user approves');

  await decide(chat, true);
  const [tool] = toolsOf(chat.lastMessage);
  assert.equal(tool.state, 'output-available');
  assert.equal(tool.output.data.title, 'Tea');
  assert.match(textOf(chat.lastMessage), /Results: .*Tea/);
  assert.equal(chat.lastMessage.id, asked.id, 'the same assistant message goes on');
  assert.deepEqual(chat.messages.map((message) => message.role), ['user', 'assistant']);
  assert.equal(await isBooked(1), true);
});

test(`${title}a call that is denied does not run, and the model is told`, async () => {
  const { chat, say } = visit(deck);
  await say(booking(2));
  await decide(chat, false);
  assert.equal(toolsOf(chat.lastMessage)[0].state, 'output-denied');
  assert.match(textOf(chat.lastMessage), /Results: .*CONFIRMATION_DENIED/);
  assert.deepEqual(chat.messages.map((message) => message.role), ['user', 'assistant']);
  assert.equal(await isBooked(2), false);
});

test(`${title}an approval that the server did not ask for is refused, and runs nothing`, async () => {
  const { chat, say } = visit(deck);
  await say(booking(3));
  // The page invents a call of its own, approved; and it changes the one that it was asked about.
  const input = { title: 'Forged', start_time: at(4, 10), end_time: at(4, 11), attendees: ['eve@example.com'] };
  const approval = { id: 'made-up', approved: true };
  const forged = { type: 'dynamic-tool', toolName: 'calendar_create_event', toolCallId: 'call_forged', input };
  const last = chat.lastMessage;
  chat.messages = [...chat.messages.slice(0, -1), { ...last, parts: [{ ...forged, state: 'approval-responded', approval }] }];
  await chat.sendMessage();
  assert.equal(chat.status, 'error');
  assert.equal(JSON.parse(chat.error.message).error.type, 'CONFIRMATION_INVALID');
  assert.equal(await isBooked(4), false);

  chat.clearError();
  chat.messages = [chat.messages[0], last];
  assert.equal(textOf(await say('say still here')), 'still here');
  assert.equal(await isBooked(3), false, 'another message is no approval');
});

test(`${title}what is approved is what was asked, whatever the page makes of it`, async () => {
  const { chat, say } = visit(deck);
  const asked = await say(booking(5));
  const tool = toolsOf(asked)[0];
  const input = { ...tool.input, title: 'Something else', start_time: at(6, 10), end_time: at(6, 11) };
  const approval = { ...tool.approval, approved: true };
  const changed = { ...tool, input, state: 'approval-responded', approval };
  chat.messages = [chat.messages[0], { ...asked, parts: asked.parts.map((part) => (part === tool ? changed : part)) }];
  await chat.sendMessage();
  assert.equal(toolsOf(chat.lastMessage)[0].output.data.title, 'Tea');
  assert.equal(await isBooked(5), true);
  assert.equal(await isBooked(6), false);
});

test(`${title}an approval counts once, and only for whom it was asked`, async () => {
  const owner = visit(deck);
  const asked = await owner.say(booking(7));
  const stranger = visit(deck, { id: owner.chat.id });
  stranger.chat.messages = owner.chat.messages;
  const { id } = toolsOf(asked)[0].approval;
  await decide(stranger.chat, true);
  assert.equal(JSON.parse(stranger.chat.error.message).error.type, 'CONFIRMATION_INVALID');
  assert.equal(await isBooked(7), false);

  await decide(owner.chat, true);
  assert.equal(await isBooked(7), true);
  const again = await owner.fetch(`${deck.url}/api/confirmations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: id, approve: true }),
  });
  assert.ok(again.status >= 400 && again.status < 500, `a second time: ${again.status}`);
});

test(`${title}when the page stops, the model is stopped and the next message is answered`, async () => {
  const { chat, say, session } = visit(deck);
  const stopped = chat.sendMessage({ text: 'slowly' });
  await until(() => answerOf(chat).length > 10, 'some words');
  const request = puppet.requests.at(-1);
  assert.equal((await session()).isRunning, true);
  await chat.stop();
  await stopped;
  assert.equal(chat.status, 'ready');
  await until(() => request.isCut, 'the model is asked no longer');
  await until(async () => !(await session()).isRunning, 'the turn is over');
  assert.equal(textOf(await say('say on we go')), 'on we go');
});

test(`${title}a model that fails is told as an error, and the next message is answered`, async () => {
  const { chat, say } = visit(deck);
  await say('refuse');
  assert.equal(chat.status, 'error');
  const { type, message, retryable } = JSON.parse(chat.error.message);
  assert.deepEqual({ type, retryable }, { type: 'PERMANENT', retryable: false });
  assert.match(message, /does not accept our request/);
  chat.clearError();
  assert.equal(textOf(await say('say better now')), 'better now');
});

test(`${title}there is nothing to resume when nothing runs`, async () => {
  const { chat, fetch, say } = visit(deck);
  await say('say hello');
  const before = structuredClone(chat.messages);
  await chat.resumeStream();
  assert.equal(chat.error, undefined);
  assert.deepEqual(chat.messages, before);
  assert.equal((await fetch(`${deck.url}/api/chat/${chat.id}/stream`)).status, 204);
});

test(`${title}an answer that is being written can be resumed from its start`, async () => {
  const { chat, fetch } = visit(deck);
  const first = chat.sendMessage({ text: 'slowly' });
  await until(() => answerOf(chat).length > 10, 'some words');
  const transport = new sdk.DefaultChatTransport({ api: `${deck.url}/api/chat`, fetch });
  const stream = await transport.reconnectToStream({ chatId: chat.id });
  for await (const message of sdk.readUIMessageStream({ stream })) {
    if (textOf(message).length < 20) continue;
    assert.equal(message.id, chat.lastMessage.id);
    assert.match(textOf(message), /^word word /);
    break;
  }
  await chat.stop();
  await first;
});

test(`${title}an answer can be had anew`, async () => {
  const { chat, say, session } = visit(deck);
  await say('say first');
  const old = await say('count');
  await chat.regenerate();
  assert.equal(chat.error, undefined);
  assert.equal(textOf(chat.lastMessage), 'You have said 2 things.', 'the replaced turn does not count');
  assert.notEqual(chat.lastMessage.id, old.id);
  assert.equal(chat.messages.length, 4);
  assert.equal((await session()).messages.length, 4);
});

test(`${title}a message that is delivered twice is one turn`, async () => {
  const { chat, fetch, say, session } = visit(deck);
  const asked = puppet.requests.length;
  await say('say only once');
  const body = JSON.stringify({ id: chat.id, messages: [chat.messages[0]], trigger: 'submit-message' });
  const again = await fetch(`${deck.url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  assert.match(await again.text(), /only once/, 'the second delivery is told the same answer');
  assert.equal(puppet.requests.length, asked + 1, 'the model was asked once');
  assert.equal((await session()).messages.length, 2);
});

test(`${title}a request that cannot be understood is refused in words`, async () => {
  const { fetch } = visit(deck);
  const response = await fetch(`${deck.url}/api/chat`, { method: 'POST', body: '{"messages":[]}' });
  assert.equal(response.status, 400);
  const { error } = await response.json();
  assert.equal(error.type, 'VALIDATION');
  assert.match(error.message, /messages/);
});

/** What the model has said so far in answer to the last message. */
function answerOf(chat) {
  return chat.lastMessage?.role === 'assistant' ? textOf(chat.lastMessage) : '';
}

/** Answers the question of the last message, as a click would, and waits for what follows. */
async function decide(chat, approved) {
  const { approval } = toolsOf(chat.lastMessage).find((tool) => tool.state === 'approval-requested');
  await chat.addToolApprovalResponse({ id: approval.id, approved });
  await until(() => chat.status === 'ready' || chat.status === 'error', 'the answer ends');
}

/** Whether the calendar has something at ten on a day: a stranger asks when the owner is free. */
async function isBooked(day) {
  const { say } = visit(deck);
  const [tool] = toolsOf(await say(looking(day)));
  assert.equal(tool.state, 'output-available', tool.errorText);
  return tool.output.data.existing_events.length > 0;
}
