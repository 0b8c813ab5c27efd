// A meeting that is booked, moved and cancelled on the page, each with approval. The model does what it is told.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { at, booking, looking } from '../clients/support/calendar.mjs';
import { behind } from '../clients/support/deck.mjs';
import { startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { says } from './support/soon.mjs';

let deck;
let browser;
let puppet;

before(async () => {
  puppet = await startPuppet({});
  [deck, browser] = await Promise.all([startDeck(behind(puppet.url, {})), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  await puppet?.stop();
});

/** Asks for a call, approves what is shown, and gives the question and what came of it. */
async function approve({ page, by, say, answer }, order) {
  await say(order);
  const button = page.locator('[data-testid=confirm-approve]:visible');
  await button.waitFor();
  const question = await by('confirm-card').last().locator('.confirm-preview').innerText();
  await button.click();
  await button.waitFor({ state: 'hidden' });
  return { question, said: await (await answer()).innerText() };
}

test('a meeting is booked, moved and cancelled with approval', async () => {
  const user = await openPage(browser, deck);
  const booked = await approve(user, booking(40));
  assert.match(booked.question, /^Book “Tea” .* with ann@example\.com\. No invitation is sent\./);
  const [, id] = /"event_id":"([^"]+)"/.exec(booked.said) ?? assert.fail(booked.said);
  assert.match(booked.said, /No invitation was sent; pass the \.ics on/);

  // The time is taken now: the model is told, and the user is not asked.
  const again = await user.ask(booking(40));
  await says(again, /CONFLICT/);
  assert.equal(await user.page.locator('[data-testid=confirm-approve]:visible').count(), 0);

  const later = { event_id: id, start_time: at(40, 14), end_time: at(40, 15) };
  const moved = await approve(user, `call calendar_move_event ${JSON.stringify(later)}`);
  assert.ok(moved.question.startsWith('Move “Tea” from '), moved.question);
  assert.ok(moved.question.includes('with ann@example.com to '), moved.question);
  assert.match(moved.said, /T14:00:00Z/);

  const cancelled = await approve(user, `call calendar_cancel_event ${JSON.stringify({ event_id: id })}`);
  assert.ok(cancelled.question.startsWith('Cancel “Tea” from '), cancelled.question);
  await says(await user.ask(looking(40)), /"existing_events":\[\]/);
  await user.leave();
});
