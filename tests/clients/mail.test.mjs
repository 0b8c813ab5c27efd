// Invitations: a booking is approved, and a mail server that is not ours (aiosmtpd) receives them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { at, booking } from './support/calendar.mjs';
import { toolsOf, visit } from './support/chat.mjs';
import { behind, startDeck, until } from './support/deck.mjs';
import { startPuppet } from './support/puppet.mjs';

/** The mail server, and what it received. */
async function startMailServer() {
  const script = fileURLToPath(new URL('../../crates/invitations/tests/mail_server.py', import.meta.url));
  const child = spawn(join(process.env.DECK_MAIL_SERVER, 'python'), [script, 'plain'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  const { port } = await next();
  return { port, next, stop: () => child.stdin.end() };
}

async function approve(chat) {
  const { approval } = toolsOf(chat.lastMessage).find((tool) => tool.state === 'approval-requested');
  await chat.addToolApprovalResponse({ id: approval.id, approved: true });
  await until(() => chat.status === 'ready' || chat.status === 'error', 'the answer ends');
  return toolsOf(chat.lastMessage).at(-1);
}

test('a booking that is approved invites its attendees, and one that is denied invites no one', async () => {
  const mail = await startMailServer();
  const puppet = await startPuppet();
  const deck = await startDeck(
    behind(puppet.url, {
      QUARTERDECK_CALENDAR__OWNER__EMAIL: 'owner@example.com',
      QUARTERDECK_CALENDAR__SMTP__HOST: 'localhost',
      QUARTERDECK_CALENDAR__SMTP__PORT: String(mail.port),
      QUARTERDECK_CALENDAR__SMTP__ENCRYPTION: 'none',
    }),
  );
  try {
    const denied = visit(deck);
    await denied.say(booking(30));
    const { approval } = toolsOf(denied.chat.lastMessage)[0];
    await denied.chat.addToolApprovalResponse({ id: approval.id, approved: false });

    const { chat, say } = visit(deck);
    await say(booking(31));
    const tool = await approve(chat);
    assert.equal(tool.state, 'output-available', tool.errorText);
    const message = await mail.next();
    assert.deepEqual(message.to, ['ann@example.com']);
    assert.equal(message.from, 'owner@example.com');
    assert.equal(message.subject, 'Invitation: Tea');
    const calendar = message.parts.find((part) => part.type === 'text/calendar');
    assert.equal(calendar.parameters.method, 'REQUEST');
    const start = at(31, 10).replaceAll('-', '').replaceAll(':', '');
    assert.match(calendar.text, new RegExp(`DTSTART:${start}`), 'it is the approved booking, not the denied one');
    assert.match(calendar.text, /ORGANIZER:mailto:owner@example.com/);
  } finally {
    assert.equal(await deck.stop(), 0, 'the server stops cleanly');
    await puppet.stop();
    mail.stop();
  }
});
