// A stand-in for OpenAI's image models: `POST /v1/images/generations` as the provider documents it. What it does follows the
// prompt: `forbidden` is refused by its content policy, `busy` is turned away, everything else becomes a picture.

import { createServer } from 'node:http';
import { deflateSync } from 'node:zlib';

/** Starts it. `requests` are the bodies that were sent. */
export async function startImageProvider() {
  const requests = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await read(request));
    requests.push({ path: request.url, key: request.headers.authorization, body });
    const [status, answer] = reply(body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function reply({ prompt, size }) {
  if (prompt.includes('forbidden')) {
    const message = 'Your request was rejected by the safety system.';
    return [400, { error: { message, type: 'image_generation_user_error', param: null, code: 'moderation_blocked' } }];
  }
  if (prompt.includes('busy')) return [500, { error: { message: 'oops', type: 'server_error' } }];
  const [width, height] = size.split('x').map((side) => Number(side) / 8);
  return [200, { created: 1, data: [{ b64_json: picture(width, height).toString('base64') }], output_format: 'png' }];
}

async function read(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** A PNG of one colour. */
function picture(width, height) {
  const line = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([20, 90, 140]))]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = deflateSync(Buffer.concat(Array(height).fill(line)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(kind, data) {
  const named = Buffer.concat([Buffer.from(kind), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc(named));
  return Buffer.concat([length, named, sum]);
}

function crc(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
