// A wire between browser and server that can be cut.

import net from 'node:net';

export async function startWire(url) {
  const { port } = new URL(url);
  const open = new Set();
  const server = net.createServer((near) => {
    const far = net.connect(Number(port), '127.0.0.1');
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => open.forEach((socket) => socket.destroy());
  return {
    url: `http://localhost:${server.address().port}`,
    /** Whatever is connected now is not any more; what comes next is. */
    cut,
    stop() {
      cut();
      server.close();
    },
  };
}
