//! Natives of the engine that compute for seconds within one function: they are stopped like everything else, and cost no other
//! tool anything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{config, data, load_files, load_tool, within};

/// Each computes for seconds within one native function, where the engine's memory lets it. What cannot is here all
/// the same, as slow as it gets.
const NATIVES: [(&str, &str); 17] = [
    ("index_of", "'a'.repeat(400_000).indexOf('a'.repeat(200_000) + 'b')"),
    ("last_index_of", "'a'.repeat(400_000).lastIndexOf('a'.repeat(200_000) + 'b')"),
    ("includes", "'a'.repeat(400_000).includes('a'.repeat(200_000) + 'b')"),
    ("split", "'a'.repeat(400_000).split('a'.repeat(200_000) + 'b')"),
    ("replace_all", "'a'.repeat(400_000).replaceAll('a'.repeat(200_000) + 'b', '')"),
    ("locale_compare", "('a' + '\\u0315\\u0300'.repeat(150_000)).localeCompare('b')"),
    ("normalize", "('a' + '\\u0315\\u0300'.repeat(150_000)).normalize('NFD')"),
    ("concat", "const a = []; a.length = 2 ** 32 - 2; [].concat(a)"),
    ("repeat", "'ab'.repeat(15_000_000).repeat(1).length"),
    ("pad_end", "''.padEnd(30_000_000, 'ab')"),
    ("join", "const a = []; a.length = 2 ** 32 - 1; a.join('')"),
    ("sort", "const a = []; a.length = 2 ** 32 - 1; a.sort()"),
    (
        "fill",
        "const a = new Uint8Array(0); Object.defineProperty(a, 'length', { value: 3e9 }); Array.prototype.fill.call(a, 1)",
    ),
    (
        "json_stringify",
        "JSON.stringify(Array(20_000).fill({}), Array.from({ length: 60_000 }, (_, n) => 'k' + n))",
    ),
    ("json_parse", "JSON.parse('[' + '1'.repeat(10_000_000) + ']')"),
    ("regexp_exec", "/^(a+)+$/.exec('a'.repeat(40) + 'b')"),
    ("array_includes", "Array.prototype.includes.call({ length: 2 ** 33 }, 1)"),
];

/// Those that must reach their deadline, so that the test cannot pass because nothing was slow.
const SURELY_SLOW: [&str; 9] =
    ["index_of", "last_index_of", "includes", "split", "replace_all", "concat", "join", "sort", "fill"];

const ORDINARY: &str = "export const execute = async ({ args }) => ({ ok: true, data: args.n + 1 });";
/// How long after its deadline a call may still compute.
const STOPPED_WITHIN: Duration = Duration::from_millis(20);
/// A machine that is busy with something else may be late itself; only a native that is late every time fails.
const ATTEMPTS: usize = 10;

fn slow(host: &JsHost, name: &str, code: &str) -> Arc<dyn Handler> {
    let source = format!("export function execute() {{ {code}; return {{ ok: true }}; }}");
    load_tool(host, name, &source).unwrap()
}

/// How late a call was answered that reached its deadline, and its thread free again; nothing if it ended before.
async fn lateness(host: &JsHost, tool: &Arc<dyn Handler>) -> Option<Duration> {
    const LIMIT_MS: u64 = 100;
    let start = Instant::now();
    let ended = tool.run(json!({}), FakeContext::new(), within(LIMIT_MS)).await;
    match ended {
        Err(HostError::TimedOut { computing: true, .. }) => {}
        _ => return None,
    }
    while host.stats().free_threads < HostConfig::default().max_threads || host.stats().calls > 0 {
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    Some(start.elapsed().saturating_sub(Duration::from_millis(LIMIT_MS)))
}

#[tokio::test]
async fn slow_natives_are_stopped_within_20_ms_of_their_deadline() {
    let host = JsHost::new(config()).unwrap();
    for (name, code) in NATIVES {
        let tool = slow(&host, name, code);
        let mut seen = Vec::new();
        loop {
            let Some(late) = lateness(&host, &tool).await else {
                assert!(!SURELY_SLOW.contains(&name), "{name} was not slow");
                break;
            };
            seen.push(late);
            if late <= STOPPED_WITHIN {
                break;
            }
            assert!(seen.len() < ATTEMPTS, "{name} was stopped late every time: {seen:?}");
        }
    }
}

/// All natives, each called more often than there are threads, and then calls of another tool.
#[tokio::test]
async fn slow_natives_cost_their_own_tools_and_no_other() {
    const CALLS_OF_EACH: usize = 20;
    let host = JsHost::new(config()).unwrap();
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let tools: Vec<_> = NATIVES.iter().map(|(name, code)| slow(&host, name, code)).collect();
    let start = Instant::now();
    let calls = (0..CALLS_OF_EACH)
        .flat_map(|_| tools.iter().map(|tool| tool.run(json!({}), FakeContext::new(), within(150))));
    let answers = join_all(calls).await;
    assert_eq!(answers.len(), NATIVES.len() * CALLS_OF_EACH);
    assert!(start.elapsed() < Duration::from_secs(20), "all are answered: {:?}", start.elapsed());
    for n in 0..1_000 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
}

/// A top level that never returns costs the load, and nothing after it.
#[tokio::test]
async fn a_top_level_that_never_returns_is_refused() {
    let host = Arc::new(JsHost::new(config()).unwrap());
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let source = "'a'.repeat(400_000).indexOf('a'.repeat(200_000) + 'b'); export const execute = () => ({ ok: true });";
    for source in [source, "while (true) {} export const execute = () => ({ ok: true });"] {
        let host = host.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            load_files(&host, &[("tool/handler.js", source)], &[]).map(drop)
        });
        let refused = loaded.await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("top level takes too long"), "{refused}");
    }
    for n in 0..100 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
}

/// A tool with hundreds of calls in progress leaves room for the calls of another.
#[tokio::test]
async fn one_tool_does_not_take_all_places() {
    let host = JsHost::new(HostConfig { max_calls: 80, ..config() }).unwrap();
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let endless = load_tool(&host, "endless", "export const execute = () => { while (true) {} };").unwrap();
    let running: Vec<_> =
        (0..200).map(|_| tokio::spawn(endless.run(json!({}), FakeContext::new(), within(1_500)))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for n in 0..20 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
    for call in running {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, HostError::TimedOut { .. } | HostError::Busy { .. }), "{error}");
    }
}
