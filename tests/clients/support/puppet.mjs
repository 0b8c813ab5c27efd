// A model that does what it is told: a server of OpenAI's chat completions whose answers follow the user's last line.
//
//   say WORDS            those words, one at a time
//   call TOOL {…}        a call; several lines are several calls in one message
//   count                how many messages the user has sent so far
//   slowly               a word every 50 ms, for a minute
//   STUNT                one of the misdeeds in stubborn.mjs
//
// After the results of calls it says `Results: …`, with their JSON, unless there is a stunt `afterResults`.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { wrongWith } from './strict.mjs';

/** Starts it. `stunts` are further words that it understands: functions of the response and the request's body. */
export async function startPuppet(stunts = {}) {
  const requests = [];
  const complaints = [];
  const server = createServer(async (request, response) => {
    const body = await read(request);
    const entry = { body, isCut: false };
    requests.push(entry);
    response.on('close', () => {
      entry.isCut = !response.writableEnded;
    });
    const wrong = wrongWith(body);
    if (wrong) {
      complaints.push(wrong);
      return response.writeHead(400).end(JSON.stringify({ error: { message: wrong } }));
    }
    answer(body, response, stunts);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    /** Stops it. It must have had nothing to complain about. */
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      assert.deepEqual(complaints, [], 'every request was one that strict servers take');
    },
  };
}

async function read(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString() || 'null');
}

function answer(body, response, stunts) {
  const last = body.messages.at(-1);
  if (last.role === 'tool') return (stunts.afterResults ?? tellResults)(response, body);
  const lines = last.content.trim().split('\n');
  const order = lines.at(-1);
  const word = order.split(' ')[0];
  if (stunts[word]) return stunts[word](response, body);
  if (word === 'call') return call(response, lines.filter((line) => line.startsWith('call ')));
  if (word === 'slowly') return slowly(response);
  if (word === 'count') {
    const said = body.messages.filter((message) => message.role === 'user');
    return say(response, `You have said ${said.length} things.`);
  }
  return say(response, order.replace(/^say /, ''));
}

/** Says what the last message's calls have come to, as JSON. */
function tellResults(response, body) {
  const after = body.messages.findLastIndex((message) => message.role !== 'tool') + 1;
  const results = body.messages.slice(after).map((message) => message.content);
  say(response, `Results: ${results.join(' ')}`);
}

export function begin(response) {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
}

export function delta(response, delta, finish = null) {
  const choice = { index: 0, delta, finish_reason: finish };
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'puppet', choices: [choice] };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

export function end(response) {
  const details = { cached_tokens: 4 };
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18, prompt_tokens_details: details };
  response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [], usage })}\n\n`);
  response.end('data: [DONE]\n\n');
}

export function say(response, text) {
  begin(response);
  for (const word of text.match(/\S+\s*/g) ?? []) delta(response, { content: word });
  delta(response, {}, 'stop');
  end(response);
}

/** Makes the calls of some lines, each `call TOOL {…}`. */
function call(response, lines) {
  makeCalls(response, lines.map((line) => line.match(/^call (\S+) (.*)$/).slice(1)));
}

/** Makes calls, each a name and the JSON of its arguments. */
export function makeCalls(response, calls) {
  begin(response);
  for (const [index, [name, json]] of calls.entries()) {
    const id = `call_${Math.random().toString(36).slice(2)}`;
    delta(response, { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
    const half = Math.floor(json.length / 2);
    for (const piece of [json.slice(0, half), json.slice(half)]) {
      delta(response, { tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  delta(response, {}, 'tool_calls');
  end(response);
}

function slowly(response) {
  begin(response);
  let left = 1_200;
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return delta(response, { content: 'word ' });
    delta(response, {}, 'stop');
    end(response);
  }, 50);
  response.on('close', () => clearInterval(timer));
}
