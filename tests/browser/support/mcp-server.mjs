// An MCP server with one tool, whose description a test can change.

import { createServer } from 'node:http';

/** Streamable HTTP with plain JSON answers, on a free port of this machine. */
export async function startMcpServer(description) {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const results = {
      initialize: () => ({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'Forge', version: '1.0.0' },
      }),
      'tools/list': () => ({
        tools: [
          {
            name: 'list_issues',
            description,
            inputSchema: { type: 'object', properties: {}, additionalProperties: false },
            annotations: { readOnlyHint: true },
          },
        ],
      }),
    };
    const result = results[method]?.();
    const answer = result ? { result } : { error: { code: -32601, message: method } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${server.address().port}`;
  return {
    address,
    url: `http://${address}/mcp`,
    /** What it says of its tool from now on. */
    publish: (changed) => (description = changed),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
