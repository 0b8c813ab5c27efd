//! Engines that run out of memory at every point of a call.

use quarterdeck_contracts::handler::HostError;
use quarterdeck_host_js::{HostConfig, JsHost};
use serde_json::json;

use crate::world::{call, config, load_files};

const BUSY_HANDLER: &str = "
    import { ToolError } from 'quarterdeck';
    class Point { #x; constructor(x) { this.#x = x; } get x() { return this.#x; } }
    export async function execute({ args, context }) {
      const points = Array.from({ length: 50 }, (_, i) => new Point(i));
      const map = new Map(points.map((point) => [point.x, { point, text: `n${point.x}`.padStart(20, '-') }]));
      function* each() { for (const entry of map.values()) yield entry.text.replace(/n(?<d>\\d+)/u, (_, d) => d * 2); }
      const url = new URL('https://example.com/?a=1'); url.searchParams.append('b', [...each()].join());
      const copy = structuredClone({ map, date: new Date(), list: [...map.keys()], bytes: new Uint8Array(100) });
      try { JSON.parse('{'); } catch (error) { console.log(error); }
      await Promise.all([context.store.put('k', { v: 1 }), new Promise((done) => setTimeout(done, 1)), import('./other.js')]);
      const proxy = new Proxy(copy, { get: (target, key) => target[key] });
      const big = [2n ** 200n, Symbol('s'), proxy.list.toSorted((a, b) => b - a)];
      if (args.fail) throw new ToolError('CONFLICT', 'no', { details: { url: url.href } });
      return { ok: true, data: { size: proxy.map.size, big: `${big[0]}`, sorted: big[2] } };
    }";

/// A leak on the way out of an engine that has no memory left would abort the process, and this test with it.
#[tokio::test]
async fn an_engine_without_memory_fails_its_call_and_nothing_else() {
    let files =
        [("tool/handler.js", BUSY_HANDLER), ("tool/other.js", "export const other = 'x'.repeat(100);")];
    let (mut unmade, mut failed, mut answered) = (0, 0, 0);
    for step in 0..400 {
        let memory_bytes = 100_000 + step * 1_801;
        let host = JsHost::new(HostConfig { memory_bytes, ..config() }).unwrap();
        let handler = match load_files(&host, &files, &[]) {
            Ok(handler) => handler,
            Err(_) => {
                unmade += 1;
                continue;
            }
        };
        for fail in [false, true] {
            match call(&handler, json!({ "fail": fail })).await {
                Ok(_) => answered += 1,
                Err(HostError::OverLimit(_) | HostError::Crashed(_)) => failed += 1,
                Err(other) => panic!("{memory_bytes} bytes: {other}"),
            }
        }
    }
    assert!(
        unmade > 10 && failed > 10 && answered > 10,
        "{unmade} unmade, {failed} failed, {answered} answered"
    );
}
