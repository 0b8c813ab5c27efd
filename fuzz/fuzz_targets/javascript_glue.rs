//! Any texts and values through the glue between QuickJS and the host, half characters included: the call ends in an answer or a
//! refusal, never in a fault of the engine, and the next call is as good as new.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::handler::{Handler, HandlerFiles, HandlerHost, HandlerToLoad, HostError, Limits};
use quarterdeck_contracts::{Metadata, Outcome};
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

const ENTRY: &str = "tool/handler.js";

/// Hands what it is given to everything of the host's that takes a text or a value. `how` is its way out.
const SOURCE: &str = "
const attempt = async (work) => { try { return await work(); } catch (error) { return error; } };
export async function execute({ args: { units, value, how }, context }) {
  const text = String.fromCharCode(...units);
  if (how === 0) return { ok: true, data: 'clean' };
  await attempt(() => new URL(text, 'https://example.com/').searchParams.append(text, text));
  await attempt(() => new URLSearchParams(text).toString());
  await attempt(() => { const url = new URL('https://example.com/'); url.host = text; url.pathname = text; url.hash = text; });
  await attempt(() => new TextDecoder().decode(new TextEncoder().encode(text)));
  await attempt(() => { context.progress(text); context.audit.log(text, value); context.emit(value); });
  await attempt(() => { console.log(text, value); console.error(value); });
  await attempt(() => context.kb.search({ query: text, value }));
  await attempt(() => structuredClone(value));
  await attempt(() => import(text));
  await attempt(() => fetch(text, { method: text, headers: { [text]: text }, body: text }));
  await attempt(() => crypto.getRandomValues(new Uint8Array(units.length)));
  await attempt(() => { context.signal.addEventListener(text, () => {}); new AbortController().abort(text); });
  if (how === 1) throw value;
  if (how === 2) throw new Error(text);
  if (how === 3) throw Object.assign(new Error(text), { type: text, details: value, stack: text });
  if (how === 4) return value;
  if (how === 5) return { ok: false, error: { type: text, message: text, details: value } };
  return { ok: true, data: { text, value } };
}";

/// The host must outlive its handler's calls, and so is never dropped.
static HANDLER: LazyLock<Arc<dyn Handler>> = LazyLock::new(|| {
    let host = Box::leak(Box::new(JsHost::new(HostConfig::default()).expect("a host can be made")));
    let metadata: Metadata = serde_json::from_value(json!({
        "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100,
    }))
    .expect("the metadata is complete");
    let files = HandlerFiles::from([(ENTRY.to_owned(), SOURCE.as_bytes().to_vec())]);
    host.load(HandlerToLoad { metadata: &metadata, entry: ENTRY, files: &files }).expect("it loads")
});

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    let (units, text) = rest.split_at(rest.len() / 2);
    let units: Vec<_> = units.chunks(2).map(|pair| pair.iter().fold(0_u16, |unit, byte| unit << 8 | u16::from(*byte))).collect();
    let text = String::from_utf8_lossy(text).into_owned();
    let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match run(json!({ "units": units, "value": value, "how": how % 8 })).await {
            Ok(_) | Err(HostError::BadAnswer(_)) => {}
            // What the handler threw, and not the engine.
            Err(HostError::Crashed(_)) if matches!(how % 8, 1..=3) => {}
            Err(other) => panic!("{other:?}"),
        }
        let clean = run(json!({ "units": [], "value": null, "how": 0 })).await.expect("the next call has an answer");
        assert_eq!(clean, Outcome::Success(json!("clean")));
    });
});

async fn run(args: Value) -> Result<Outcome, HostError> {
    let limits = Limits { timeout: Duration::from_secs(10) };
    let answer = HANDLER.run(args, FakeContext::new(), limits).await?;
    Ok(answer.outcome)
}
