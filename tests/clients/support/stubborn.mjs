// What a provider should not do. Each is a word that the puppet understands in such a test.

import { begin, delta, end, makeCalls } from './puppet.mjs';

export const misdeeds = {
  /** Says something and drops the connection. */
  drop(response) {
    begin(response);
    delta(response, { content: 'Half an ' });
    setTimeout(() => response.destroy(), 50);
  },
  /** Drops the connection before it says anything. */
  vanish: (response) => response.destroy(),
  /** Ends without saying that it is at an end. */
  trail(response) {
    begin(response);
    delta(response, { content: 'And then ' });
    response.end();
  },
  /** Wants to be left alone for an hour. */
  limit: (response) => response.writeHead(429, { 'retry-after': '3600' }).end('{"error":{"message":"slow down"}}'),
  /** Is broken, whenever it is asked. */
  break: (response) => response.writeHead(503).end('<html>Bad gateway</html>'),
  /** Does not like our key. */
  key: (response) => response.writeHead(401).end('{"error":{"message":"Incorrect API key provided: sk-secret"}}'),
  /** Sends what is no JSON. */
  garbage(response) {
    begin(response);
    response.end('data: {"choices":[{"delta":{"content":"Hel\n\ndata: \u0000\u0001 <html>\n\n');
  },
  /** Sends a page instead of a stream. */
  page: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome to the wifi</html>'),
  /** Sends no end of one line. */
  flood(response) {
    begin(response);
    const more = 'x'.repeat(65_536);
    const pour = () => {
      while (!response.destroyed) if (!response.write(more)) return response.once('drain', pour);
    };
    pour();
  },
  /** Calls an undeclared tool. */
  unknown: (response) => makeCalls(response, [['launch_rocket', '{"target":"moon"}']]),
  /** Calls with arguments that are cut short. */
  cut: (response) => makeCalls(response, [['format_datetime', '{"datetime":"2026-01-']]),
  /** Calls forty times at once. */
  forty(response) {
    const call = (number) => ['kb_search', JSON.stringify({ query: `Fram ${number}` })];
    makeCalls(response, Array.from({ length: 40 }, (_, number) => call(number)));
  },
  /** Calls the same tool again whatever it is told. */
  again: (response) => makeCalls(response, [['format_datetime', '{"datetime":"2026-01-13T09:30:00Z"}']]),
  /** Takes the request and never says a word. */
  silent() {},
  /** Begins and falls silent. */
  stall(response) {
    begin(response);
    delta(response, { content: 'Let me think ' });
  },
  /** Says only that it is still there. */
  hum(response) {
    begin(response);
    const timer = setInterval(() => response.write(': still here\n\n'), 200);
    response.on('close', () => clearInterval(timer));
  },
  /** Says nothing, properly. */
  empty(response) {
    begin(response);
    delta(response, {}, 'stop');
    end(response);
  },
};
