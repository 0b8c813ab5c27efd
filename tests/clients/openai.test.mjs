// A chat program with OpenAI's own client: the agent behind the OpenAI API.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { behind, startDeck, until } from './support/deck.mjs';
import { load } from './support/packages.mjs';
import { booking } from './support/calendar.mjs';
import { begin, say, startPuppet } from './support/puppet.mjs';

const { default: OpenAI, version } = await load('openai');
const title = `with openai ${version}: `;
const model = 'quarterdeck';

let deck;
let puppet;
let client;

before(async () => {
  puppet = await startPuppet({
    refuse: (response) => response.writeHead(400).end('{"error":{"message":"no such model"}}'),
    nap(response) {
      begin(response);
      setTimeout(() => say(response, 'slept'), 1_000);
    },
  });
  deck = await startDeck(behind(puppet.url, { QUARTERDECK_API_KEY_TESTER: 'a-key-of-the-tests-that-is-long' }));
  client = connect('a-key-of-the-tests-that-is-long');
});

after(async () => {
  const ended = await deck?.stop();
  await puppet?.stop();
  assert.equal(ended, 0, 'the server stops cleanly');
});

test(`${title}the models are listed, and found by name`, async () => {
  const models = await client.models.list();
  assert.deepEqual(models.data.map((entry) => entry.id), [model]);
  assert.equal((await client.models.retrieve(model)).owned_by, 'quarterdeck');
  await assert.rejects(client.models.retrieve('gpt-5'), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    return true;
  });
});

test(`${title}an answer at once`, async () => {
  const completion = await client.chat.completions.create(saying('say Good morning'));
  assert.equal(completion.object, 'chat.completion');
  assert.equal(completion.model, model);
  const [choice] = completion.choices;
  assert.deepEqual(choice.message, { role: 'assistant', content: 'Good morning' });
  assert.equal(choice.finish_reason, 'stop');
  assert.deepEqual(completion.usage, {
    prompt_tokens: 11,
    completion_tokens: 7,
    total_tokens: 18,
    prompt_tokens_details: { cached_tokens: 4 },
  });
});

test(`${title}the client's telling of the conversation is what the model gets`, async () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'say one' },
    { role: 'assistant', content: 'one' },
    { role: 'user', content: [{ type: 'text', text: 'count' }] },
  ];
  const { choices } = await client.chat.completions.create({ model, messages });
  assert.equal(choices[0].message.content, 'You have said 2 things.');
  const [ours, settings] = puppet.requests.at(-1).body.messages;
  assert.equal(ours.role, 'system');
  assert.doesNotMatch(ours.content, /Be brief/, 'a client does not write our instructions');
  assert.equal(settings.role, 'user');
  assert.match(settings.content, /Be brief/);
});

test(`${title}an answer piece by piece`, async () => {
  const stream = await client.chat.completions.create({ ...saying('say one two three'), stream: true });
  const pieces = [];
  for await (const chunk of stream) {
    assert.equal(chunk.usage ?? null, null, 'usage was not requested');
    pieces.push(chunk.choices[0]?.delta?.content ?? '');
  }
  assert.equal(pieces.join(''), 'one two three');
  assert.ok(pieces.filter(Boolean).length >= 3, 'in pieces');
});

test(`${title}the usage comes last when it is asked for`, async () => {
  const options = { stream: true, stream_options: { include_usage: true } };
  const stream = await client.chat.completions.create({ ...saying('say hello'), ...options });
  let last;
  for await (const chunk of stream) last = chunk;
  assert.deepEqual(last.choices, []);
  assert.deepEqual(last.usage, {
    prompt_tokens: 11,
    completion_tokens: 7,
    total_tokens: 18,
    prompt_tokens_details: { cached_tokens: 4 },
  });
});

test(`${title}the stream helper puts an answer together`, async () => {
  const completion = await client.chat.completions.stream(saying('say all of it')).finalChatCompletion();
  assert.equal(completion.choices[0].message.content, 'all of it');
  assert.equal(completion.choices[0].finish_reason, 'stop');
});

test(`${title}tools run inside and are not shown as calls`, async () => {
  const call = 'call format_datetime {"datetime":"2026-01-13T09:30:00Z","style":"iso"}';
  const completion = await client.chat.completions.create(saying(call));
  assert.equal(completion.choices[0].message.tool_calls, undefined);
  assert.equal(completion.choices[0].finish_reason, 'stop');
  assert.match(completion.choices[0].message.content, /Results: .*2026-01-13T09:30:00\+00:00/);
  const streamed = await client.chat.completions.stream(saying(call)).finalChatCompletion();
  assert.match(streamed.choices[0].message.content, /Results: .*2026-01-13T09:30:00\+00:00/);
});

for (const how of ['at once', 'streamed']) {
  test(`${title}a tool that needs approval is asked about in words, and runs when the user approves (${how})`, async () => {
    const day = how === 'streamed' ? 11 : 12;
    const messages = [{ role: 'user', content: booking(day) }];
    const asked = await tell(how, messages);
    assert.match(asked, /Book “Tea”/);
    const [, code] = asked.match(/approve ([0-9A-F]+)/);
    assert.doesNotMatch(asked, /"event_id"/, 'nothing has run');

    messages.push({ role: 'assistant', content: asked }, { role: 'user', content: `approve ${code}` });
    await tell(how, messages);
    assert.match(lastSaid(), /"event_id"/, 'it has run, and the model is told');

    messages.push({ role: 'assistant', content: 'Done.' }, { role: 'user', content: `approve ${code}` });
    await tell(how, messages);
    assert.doesNotMatch(lastSaid(), /"event_id"/, 'a code counts once');
  });
}

test(`${title}a user can approve where no keys are configured`, async () => {
  const open = await startDeck(behind(puppet.url));
  try {
    const anonymous = connect('none', open);
    const messages = [{ role: 'user', content: booking(14) }];
    const asked = await tell('at once', messages, anonymous);
    const [, code] = asked.match(/approve ([0-9A-F]+)/);
    messages.push({ role: 'assistant', content: asked }, { role: 'user', content: `approve ${code}` });
    await tell('at once', messages, connect('another', open));
    assert.doesNotMatch(lastSaid(), /"event_id"/, 'the code is of no use to others');
    await tell('at once', messages, anonymous);
    assert.match(lastSaid(), /"event_id"/);
  } finally {
    await open.stop();
  }
});

test(`${title}a tool that the user denies does not run`, async () => {
  const messages = [{ role: 'user', content: booking(13) }];
  const asked = await tell('at once', messages);
  const [, code] = asked.match(/deny ([0-9A-F]+)/);
  messages.push({ role: 'assistant', content: asked }, { role: 'user', content: `deny ${code}` });
  await tell('at once', messages);
  assert.match(lastSaid(), /not approved by the user/);
  assert.doesNotMatch(lastSaid(), /"event_id"/);
});

test(`${title}equal requests at the same time are all answered`, async () => {
  const answers = await Promise.all([1, 2, 3].map(() => client.chat.completions.create(saying('nap'))));
  assert.deepEqual(answers.map(({ choices }) => choices[0].message.content), ['slept', 'slept', 'slept']);
});

test(`${title}a model that fails is an error in words, and is not asked again by the client`, async () => {
  const asked = puppet.requests.length;
  await assert.rejects(client.chat.completions.create(saying('refuse')), (error) => {
    assert.ok(error instanceof OpenAI.InternalServerError, `${error}`);
    assert.match(error.message, /does not accept our request/);
    return true;
  });
  assert.equal(puppet.requests.length, asked + 1);
  await assert.rejects(client.chat.completions.stream(saying('refuse')).finalChatCompletion(), (error) => {
    assert.ok(error instanceof OpenAI.APIError, `${error}`);
    assert.match(error.message, /does not accept our request/);
    return true;
  });
});

test(`${title}what cannot be answered is the error that the client knows`, async () => {
  const create = (body, from = client) => from.chat.completions.create(body);
  await assert.rejects(create({ ...saying('hi'), model: 'gpt-5' }), OpenAI.NotFoundError);
  await assert.rejects(create({ model, messages: [] }), OpenAI.BadRequestError);
  await assert.rejects(create({ model, messages: [{ role: 'unknown', content: 'hi' }] }), OpenAI.BadRequestError);
  await assert.rejects(create(saying('hi'), connect('an-unknown-api-key')), OpenAI.AuthenticationError);
  await assert.rejects(client.responses.create({ model, input: 'hi' }), OpenAI.NotFoundError);
});

test(`${title}a client over its rate limit is told to wait`, async () => {
  const strict = await startDeck(behind(puppet.url, {
    QUARTERDECK_API_KEY_TESTER: 'a-key-of-the-tests-that-is-long',
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '2',
  }));
  try {
    const hasty = connect('a-key-of-the-tests-that-is-long', strict, { maxRetries: 0 });
    await hasty.chat.completions.create(saying('say one'));
    await hasty.chat.completions.create(saying('say two'));
    await assert.rejects(hasty.chat.completions.create(saying('say three')), (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError);
      assert.match(error.headers.get('retry-after'), /^\d+$/);
      return true;
    });
  } finally {
    await strict.stop();
  }
});

test(`${title}when the client stops reading, the model is stopped`, async () => {
  const stream = await client.chat.completions.create({ ...saying('slowly'), stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) break;
  }
  const request = puppet.requests.at(-1);
  stream.controller.abort();
  await until(() => request.isCut, 'the model is asked no longer');
  const completion = await client.chat.completions.create(saying('say on we go'));
  assert.equal(completion.choices[0].message.content, 'on we go');
});

function connect(apiKey, to = deck, options = {}) {
  return new OpenAI({ apiKey, baseURL: `${to.url}/v1`, ...options });
}

function saying(content) {
  return { model, messages: [{ role: 'user', content }] };
}

/** The answer to a conversation. */
async function tell(how, messages, to = client) {
  const { completions } = to.chat;
  const streamed = () => completions.stream({ model, messages }).finalChatCompletion();
  const completion = how === 'streamed' ? await streamed() : await completions.create({ model, messages });
  return completion.choices[0].message.content;
}

/** The last message that the model was given. */
function lastSaid() {
  return puppet.requests.at(-1).body.messages.at(-1).content;
}
