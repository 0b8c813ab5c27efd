// Another site, which embeds the chat, and a front before the server that records what browsers send: over HTTP, or over
// HTTPS with a certificate that is made on the spot and trusted by no browser.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDeck } from './deck.mjs';

/** Names of two sites, both on this machine, and how a browser finds them. */
export const resolves = '--host-resolver-rules=MAP shop.test 127.0.0.1, MAP chat.test 127.0.0.1';

/** A site and a server; `html` is what the site shows beside the script. */
export async function startSite({ isEncrypted = false, html = '<h1>Shop</h1>', script = '', settings = {} } = {}) {
  const tls = isEncrypted ? certificate() : null;
  const site = { html, script, requests: [] };
  const server = listener(tls, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(
      `<!doctype html><html lang="en"><head><title>Shop</title><meta name="viewport" content="width=device-width">` +
        `<link rel="icon" href="data:,"></head><body><main>${site.html}</main>` +
        (request.url === '/bare' ? '' : `<script src="${site.server}/embed.js" async ${site.script}></script>`),
    );
  });
  site.url = address(await port(server), isEncrypted ? 'https://shop.test' : 'http://127.0.0.1');
  const deck = await startDeck({
    QUARTERDECK_SERVER__ORIGINS: site.url,
    QUARTERDECK_SERVER__HOSTS: 'chat.test',
    QUARTERDECK_LIMITS__REQUESTS_PER_MINUTE_CLIENT: '1000',
    ...settings,
  });
  const front = listener(tls, (request, response) => forward(request, response, deck, site.requests));
  front.on('upgrade', (request, socket, head) => tunnel(request, socket, head, deck, site.requests));
  // Both are this machine, and yet two sites.
  site.server = address(await port(front), isEncrypted ? 'https://chat.test' : 'http://localhost');
  site.deck = deck;
  site.remove = async () => {
    for (const open of [server, front]) {
      open.close();
      open.closeAllConnections();
    }
    await deck.remove();
  };
  return site;
}

const address = (port, base) => `${base}:${port}`;

function listener(tls, handle) {
  return tls ? https.createServer(tls, handle) : http.createServer(handle);
}

async function port(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

/** Passes a request on. What begins with `/probe` is answered here: it sets a cookie that any site would get back. */
function forward(request, response, deck, requests) {
  requests.push({ method: request.method, path: request.url, headers: request.headers });
  if (request.url.startsWith('/probe')) {
    response.writeHead(200, {
      'set-cookie': 'probe=1; Path=/; SameSite=None; Secure',
      'access-control-allow-origin': request.headers.origin ?? '*',
      'access-control-allow-credentials': 'true',
    });
    return response.end();
  }
  const { port } = new URL(deck.url);
  const passed = http.request(
    { host: '127.0.0.1', port, path: request.url, method: request.method, headers: request.headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  passed.on('error', () => response.destroy());
  response.on('close', () => passed.destroy());
  request.pipe(passed);
}

function tunnel(request, near, head, deck, requests) {
  requests.push({ method: 'UPGRADE', path: request.url, headers: request.headers });
  const far = net.connect(Number(new URL(deck.url).port), '127.0.0.1', () => {
    const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
    far.write(`GET ${request.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    far.write(head);
    near.pipe(far).pipe(near);
  });
  for (const socket of [near, far]) {
    socket.on('error', () => {});
    socket.on('close', () => {
      near.destroy();
      far.destroy();
    });
  }
}

/** A key and a certificate, neither of which outlives this process. */
function certificate() {
  const folder = mkdtempSync(join(tmpdir(), 'quarterdeck-certificate-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=chat.test', '-addext', 'subjectAltName=DNS:chat.test,DNS:shop.test'];
  try {
    execFileSync('openssl', ['req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
