// What a user approves, as they see it: nothing is hidden, and nothing is moved. Pictures are left under
// target/browser/screenshots.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { visible } from '../../crates/server/web/shared/visible.js';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { says } from './support/soon.mjs';

const pictures = fileURLToPath(new URL('../../target/browser/screenshots/', import.meta.url));
const table = JSON.parse(
  readFileSync(new URL('../../crates/contracts/tests/visible.json', import.meta.url), 'utf8'),
);
/** Everything that a reader would not see, but for joiners and selectors of emoji. */
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;

/** Titles that pretend to be others, and what a reader is to see. */
const spoofs = [
  ['turned', 'Lunch \u202Ehcnul taerg\u202C today', 'Lunch ⟨U+202E⟩hcnul taerg⟨U+202C⟩ today'],
  ['isolated', 'Pay \u2066001 \u2069EUR', 'Pay ⟨U+2066⟩001 ⟨U+2069⟩EUR'],
  ['zero-width', 'Team\u200B\u2060 \uFEFFtea\u00AD', 'Team⟨U+200B⟩⟨U+2060⟩ ⟨U+FEFF⟩tea⟨U+00AD⟩'],
  ['tags', 'Tea\u{E0070}\u{E0061}\u{E0079}', 'Tea⟨U+E0070⟩⟨U+E0061⟩⟨U+E0079⟩'],
  ['readable', 'שלום 👨‍👩‍👧 ❤️ مرحبا', 'שלום 👨‍👩‍👧 ❤️ مرحبا'],
];
const description = `first line\nsecond line\n${'long '.repeat(300)}THE-END`;

const booking = (title, day) => ({
  title,
  start_time: `2090-01-${String(day).padStart(2, '0')}T10:00:00Z`,
  end_time: `2090-01-${String(day).padStart(2, '0')}T11:00:00Z`,
  attendees: ['ann@example.com', 'ben@example.com'],
  description,
  include_zoom_link: false,
});

let deck;
let browser;
let folder;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  folder = mkdtempSync(join(tmpdir(), 'quarterdeck-approval-'));
  // One for each test, in their order; the last one is for the phone.
  const script = [...spoofs, ['phone', 'Tea']].map(([, title], place) => ({
    calls: [{ name: 'calendar_create_event', arguments: booking(title, place + 1) }],
  }));
  writeFileSync(join(folder, 'script.json'), JSON.stringify(script));
  [deck, browser] = await Promise.all([
    startDeck({ QUARTERDECK_TEXT__REHEARSAL__SCRIPT: join(folder, 'script.json') }),
    startBrowser(),
  ]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test('the page marks what cannot be seen as the server does', () => {
  assert.ok(table.length > 15);
  for (const { name, text, shown } of table) {
    assert.equal(visible(text), shown, name);
    assert.equal(visible(shown), shown, `${name}, a second time`);
  }
});

for (const [name, title, shown] of spoofs) {
  test(`the card shows every argument in full and in its order: ${name}`, async () => {
    const { page, by, say, leave } = await openPage(browser, deck);
    await say('Book it');
    await by('confirm-approve').waitFor();
    const card = by('confirm-card');
    await says(card.locator('.confirm-preview'), new RegExp(`“${escaped(shown)}”.*ann@example.com, ben@example.com`));

    const values = await card.locator('dl').evaluate((list) => {
      const names = [...list.querySelectorAll('dt')].map((term) => term.textContent);
      const texts = [...list.querySelectorAll('dd')].map((value) => value.querySelector('code')?.textContent);
      return Object.fromEntries(names.map((name, place) => [name, texts[place]]));
    });
    assert.deepEqual(Object.keys(values).sort(), [
      'attendees', 'description', 'end_time', 'include_zoom_link', 'start_time', 'title',
    ]);
    assert.equal(values.title, shown);
    assert.equal(values.description, description, 'all of it');
    assert.deepEqual(JSON.parse(values.attendees), ['ann@example.com', 'ben@example.com']);
    assert.doesNotMatch(await card.innerText(), hidden);

    await page.screenshot({ path: `${pictures}approval-${name}.png` });

    const ofTitle = card.locator('dt', { hasText: /^title$/ }).locator('xpath=following-sibling::dd[1]');
    const where = await glyphs(ofTitle.locator('code'));
    const isLatin = name !== 'readable';
    for (const [left, right] of pairs(where)) {
      const sameLine = Math.abs(left.top - right.top) < 2;
      if (isLatin && sameLine) {
        assert.ok(left.x <= right.x + 0.5, `${left.character} stands before ${right.character}`);
      }
    }
    assert.ok(where.every(({ width, character }) => width > 0 || /\s/.test(character)), 'every glyph has a place');

    // What stands beside a value is not moved by it: names stand left of their values.
    const boxes = await card.locator('dl').evaluate((list) =>
      [...list.children].map((child) => {
        const { left, top } = child.getBoundingClientRect();
        return { tag: child.tagName, left, top };
      }),
    );
    for (const [term, value] of pairs(boxes).filter(([first]) => first.tag === 'DT')) {
      assert.ok(term.left < value.left && Math.abs(term.top - value.top) < 6, 'each beside its name');
    }
    await leave();
  });
}

test('on a phone, every argument is in view of who scrolls to the buttons, and nothing is cut off', async () => {
  const { page, by, say, leave } = await openPage(browser, deck, { viewport: { width: 360, height: 640 } });
  await say('Book it');
  await by('confirm-approve').waitFor();
  const card = by('confirm-card');
  const clipped = await card.evaluate((card) =>
    [card, ...card.querySelectorAll('*')]
      .filter((element) => getComputedStyle(element).overflowX !== 'visible' || getComputedStyle(element).overflowY !== 'visible')
      .filter((element) => !element.closest('svg'))
      .filter((element) => element.scrollHeight > element.clientHeight + 1 || element.scrollWidth > element.clientWidth + 1)
      .map((element) => element.className || element.tagName),
  );
  assert.deepEqual(clipped, []);
  const places = await card.locator('dd').evaluateAll((values) =>
    values.map((value) => {
      const { left, right, height } = value.getBoundingClientRect();
      return { fits: left >= 0 && right <= innerWidth, isThere: height > 0, isCut: value.scrollWidth > value.clientWidth + 1 };
    }),
  );
  assert.equal(places.length, 6);
  assert.ok(places.every(({ fits, isThere, isCut }) => fits && isThere && !isCut), JSON.stringify(places));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await by('confirm-approve').scrollIntoViewIfNeeded();
  await page.screenshot({ path: `${pictures}approval-phone.png` });
  await leave();
});

test('operators who try a tool see every argument in full before they approve', async () => {
  const [, title, shown] = spoofs[0];
  const { page, by, leave } = await openPage(browser, deck);
  await page.goto(`${deck.url}/deck#playground/calendar_create_event`);
  await by('play-tool').selectOption('calendar_create_event');
  await by('play-args').fill(JSON.stringify(booking(title, 20)));
  await by('play-run').click();
  await says(by('play-outcome'), /Failed: confirmation required/);
  const question = await by('play-question').innerText();
  assert.ok(question.includes(shown), question);
  for (const part of ['ann@example.com', 'THE-END', 'include_zoom_link', 'second line']) {
    assert.ok(question.includes(part), part);
  }
  assert.doesNotMatch(question, hidden);
  await page.screenshot({ path: `${pictures}approval-playground.png` });
  await leave();
});

test('the card says why the user is asked, and what they have asked for runs at once', async () => {
  const tool = join(folder, 'tools', 'draw');
  mkdirSync(tool, { recursive: true });
  const text = { type: 'string', description: 'What.' };
  const schema = {
    toolId: 'draw', version: '1.0.0', description: 'Draws something.', category: 'action', sideEffects: 'writes',
    idempotent: false, requiresConfirmation: 'policy', allowedModes: ['text'], latencyBudgetMs: 1000,
    confirmWhen: { notRequestedThisTurn: true, topics: 'sensitive' }, requestedBy: { en: ['draw *'] },
    parameters: { type: 'object', additionalProperties: false, required: ['what'], properties: { what: text } },
  };
  writeFileSync(join(tool, 'schema.json'), JSON.stringify(schema));
  writeFileSync(join(tool, 'guide.md'), '# Draw\n\nDraws something. Use it when a picture is wanted.\n');
  writeFileSync(join(tool, 'handler.js'), 'export const execute = async ({ args }) => ({ ok: true, data: args });\n');
  const draw = (what) => ({ calls: [{ name: 'draw', arguments: { what } }] });
  const script = join(folder, 'draw.json');
  writeFileSync(script, JSON.stringify([draw('a fox'), { text: 'Here is your fox.' }, draw('two weapons')]));
  const own = await startDeck({ QUARTERDECK_TEXT__REHEARSAL__SCRIPT: script }, { tools: join(folder, 'tools') });
  const { page, by, say, leave } = await openPage(browser, own);
  await say('Draw a fox');
  await page.getByRole('article', { name: 'Agent' }).getByText('Here is your fox.').waitFor();
  assert.equal(await by('confirm-card').count(), 0);
  await say('Thank you.');
  await by('confirm-approve').waitFor();
  await says(by('confirm-reason'), /^You did not ask for this just now\. It touches on “weapons”\.$/);
  await page.screenshot({ path: `${pictures}approval-reason.png` });
  await leave();
  await own.remove();
});

/** Where each character of an element's text is drawn. */
function glyphs(element) {
  return element.evaluate((node) => {
    const found = [];
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      let place = 0;
      for (const { segment } of new Intl.Segmenter().segment(text.data)) {
        const range = document.createRange();
        range.setStart(text, place);
        range.setEnd(text, place + segment.length);
        place += segment.length;
        const [box] = range.getClientRects();
        if (box) found.push({ character: segment, x: box.left, top: box.top, width: box.width });
      }
    }
    return found;
  });
}

function pairs(items) {
  return items.slice(1).map((item, place) => [items[place], item]);
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
