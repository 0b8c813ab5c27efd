// Images on the page: generated when the user asks for one or approves it, shown with their text, and still there after a
// reload and a restart.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { behind } from '../clients/support/deck.mjs';
import { startPuppet } from '../clients/support/puppet.mjs';
import { startBrowser, openPage } from './support/browser.mjs';
import { startDeck } from './support/deck.mjs';
import { startImageProvider } from './support/image-provider.mjs';
import { counts, has, says, soon } from './support/soon.mjs';

const KEY = 'sk-images-of-this-test';

let deck;
let browser;
let puppet;
let provider;

before(async () => {
  [puppet, provider] = await Promise.all([startPuppet(), startImageProvider()]);
  const settings = behind(puppet.url, {
    QUARTERDECK_IMAGES__PROVIDER: 'openai',
    QUARTERDECK_IMAGES__BASE_URL: provider.url,
    OPENAI_API_KEY: KEY,
  });
  [deck, browser] = await Promise.all([startDeck(settings), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await deck?.remove();
  await puppet?.stop();
  await provider?.stop();
});

const prompt = 'A watercolour of a lighthouse <b>in fog</b>';
const order = (args) => `call image_generate ${JSON.stringify(args)}`;

/** Asks for an image in so many words; the model, which does what it is told, does it. */
const generate = (user, args) => user.ask(`Draw it for me.\n${order(args)}`);

/** Waits until the picture is drawn, and gives its size. */
const drawn = (image) =>
  soon(async () => {
    const size = await image.evaluate(({ complete, naturalWidth, naturalHeight }) => complete && [naturalWidth, naturalHeight]);
    assert.ok(size && size[0] > 0, 'the picture is drawn');
    return size;
  });

test('an image appears with its text, and again after a reload and a restart', async () => {
  const user = await openPage(browser, deck);
  const { page, by } = user;
  await generate(user, { prompt, aspect: 'landscape' });
  const image = by('image');
  await counts(image, 1);
  await has(image, 'alt', prompt);
  await has(image, 'src', /^\/files\/file_[0-9a-f]{32}\?session=ses_[0-9a-f]+&expires=\d+&signature=[0-9a-f]{64}$/);
  assert.deepEqual(await drawn(image), [192, 128]);
  const first = await image.getAttribute('src');
  assert.equal(provider.requests.length, 1);
  assert.deepEqual(provider.requests[0].body.prompt, prompt);
  assert.equal(provider.requests[0].key, `Bearer ${KEY}`);

  await page.reload();
  await has(by('image'), 'alt', prompt);
  assert.deepEqual(await drawn(by('image')), [192, 128]);
  assert.notEqual(await by('image').getAttribute('src'), first, 'a new link');

  await deck.kill();
  await deck.start();
  await page.reload();
  assert.deepEqual(await drawn(by('image')), [192, 128]);
  assert.equal(provider.requests.length, 1, 'nothing was generated a second time');
  await user.leave();
});

test('an image that the user did not ask for, or on a sensitive topic, needs approval', async () => {
  const user = await openPage(browser, deck);
  const before = provider.requests.length;
  await user.say(order({ prompt: 'A quiet harbour' }));
  await says(user.by('confirm-card'), /A quiet harbour/);
  assert.equal(provider.requests.length, before, 'nothing is paid for before the user says so');
  await user.by('confirm-approve').click();
  await user.answer();
  await drawn(user.by('image'));
  await user.say(`Draw it for me.\n${order({ prompt: 'A sailor with a gun' })}`);
  const card = user.by('confirm-card').last();
  await says(card, /A sailor with a gun/);
  await card.getByTestId('confirm-deny').click();
  await user.answer();
  await counts(user.by('image'), 1);
  assert.equal(provider.requests.length, before + 1);
  await user.leave();
});

test('neither the model nor the page sees a key, and the model sees no link', async () => {
  const user = await openPage(browser, deck);
  await generate(user, { prompt: 'A paper boat' });
  const seen = JSON.stringify(puppet.requests.at(-1).body);
  assert.ok(seen.includes('file_') && !seen.includes('signature=') && !seen.includes('/files/'), seen);
  assert.ok(!seen.includes(KEY) && !(await user.page.content()).includes(KEY));
  await user.leave();
});

test('what a provider refuses is told, and nothing is shown', async () => {
  const user = await openPage(browser, deck);
  const before = provider.requests.length;
  await says(await generate(user, { prompt: 'something forbidden' }), /content policy does not allow/);
  await says(await generate(user, { prompt: 'a busy street' }), /may have made one/);
  await counts(user.by('image'), 0);
  assert.equal(provider.requests.length, before + 2, 'each was asked for once');
  await user.leave();
});

test('an image whose file is gone leaves its text', async () => {
  const user = await openPage(browser, deck, { expects: [/404|403/] });
  await generate(user, { prompt: 'A small island' });
  await drawn(user.by('image'));
  await user.page.route('**/files/**', (route) => route.fulfill({ status: 404, body: '{}' }));
  await user.page.reload();
  await says(user.by('image-lost'), 'This image is no longer available: A small island');
  await user.leave();
});
