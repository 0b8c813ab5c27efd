//! The engine of JavaScript beyond the cost of a call: calls that wait, and calls beside others that never end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::Metadata;
use quarterdeck_contracts::handler::{Handler, HandlerFiles, HandlerHost, HandlerToLoad, Limits};
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::dispatch::definition;

const CALLS: usize = 1_000;
/// Sixteen cores' worth, on however many there are.
const LOOPS: usize = 16;
const ORDINARY: &str = "export const execute = async ({ args }) => ({ ok: true, data: args.n });";
const WAITING: &str = "export const execute = async () => { await new Promise((done) => setTimeout(done, 3000)); return { ok: true, data: 1 }; };";
const ENDLESS: &str = "export const execute = () => { while (true) {} };";

/// Memory for each of a thousand calls that wait, in bytes.
pub(crate) fn parked() -> Value {
    let (host, runtime) = world();
    let handler = load(&host, WAITING);
    let bytes = runtime.block_on(async {
        handler.run(json!({}), FakeContext::new(), within(10)).await.expect("it ends");
        let before = private_bytes();
        let calls: Vec<_> = (0..CALLS)
            .map(|_| tokio::spawn(handler.run(json!({}), FakeContext::new(), within(30))))
            .collect();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let after = private_bytes();
        assert_eq!(host.stats().calls, CALLS, "all of them wait");
        for call in calls {
            call.await.expect("it does not panic").expect("it ends");
        }
        (after - before) / CALLS
    });
    json!({ "bytes": bytes })
}

/// Ordinary calls, one after the other, with nothing else and beside endless loops: median and 99th percentile in nanoseconds.
pub(crate) fn beside_loops() -> Value {
    let (host, runtime) = world();
    let (ordinary, endless) = (load(&host, ORDINARY), load(&host, ENDLESS));
    runtime.block_on(async {
        let (alone_median, alone) = percentiles(&ordinary).await;
        let loops: Vec<_> = (0..LOOPS)
            .map(|_| tokio::spawn(endless.run(json!({}), FakeContext::new(), within(20))))
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (beside_median, beside) = percentiles(&ordinary).await;
        assert!(loops.iter().all(|endless| !endless.is_finished()), "the loops still run");
        loops.iter().for_each(tokio::task::JoinHandle::abort);
        let ns = |time: Duration| time.as_nanos() as u64;
        json!({ "alone_p50": ns(alone_median), "alone_p99": ns(alone), "p50": ns(beside_median), "p99": ns(beside) })
    })
}

async fn percentiles(handler: &Arc<dyn Handler>) -> (Duration, Duration) {
    let mut times = Vec::with_capacity(CALLS);
    for n in 0..CALLS {
        let (handler, start) = (handler.clone(), Instant::now());
        let call = async move { handler.run(json!({ "n": n }), FakeContext::new(), within(10)).await };
        tokio::spawn(call).await.expect("it does not panic").expect("it ends");
        times.push(start.elapsed());
    }
    times.sort();
    (times[CALLS / 2], times[CALLS * 99 / 100])
}

fn world() -> (JsHost, Runtime) {
    let host = JsHost::new(HostConfig { max_calls: 2 * CALLS, ..HostConfig::default() }).expect("it starts");
    (host, Builder::new_multi_thread().enable_all().build().expect("a runtime can be made"))
}

fn load(host: &JsHost, source: &str) -> Arc<dyn Handler> {
    let metadata: Metadata =
        serde_json::from_value(definition(&json!({ "type": "object" }))).expect("it is complete");
    let files = HandlerFiles::from([("tool/handler.js".to_owned(), source.as_bytes().to_vec())]);
    host.load(HandlerToLoad { metadata: &metadata, entry: "tool/handler.js", files: &files })
        .expect("it loads")
}

fn within(seconds: u64) -> Limits {
    Limits { timeout: Duration::from_secs(seconds) }
}

/// What the process holds for itself. Pages of an image that no call has written to are shared by all of its instances.
fn private_bytes() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("this is Linux");
    let of_line = |line: &str| line.split_whitespace().nth(1).and_then(|kb| kb.parse::<usize>().ok());
    let kb: usize = rollup.lines().filter(|line| line.starts_with("Private_")).filter_map(of_line).sum();
    kb * 1_024
}
