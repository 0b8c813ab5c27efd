//! A module that returns any addresses, asks for anything and writes anywhere in its memory: its call ends, and the next one is as
//! good as new. And any bytes as a module: refused or loaded, and nothing else.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::handler::{
    Handler, HandlerFiles, HandlerHost, HandlerSource, HandlerToLoad, HostError, Inspector, Limits,
};
use quarterdeck_contracts::{Metadata, Outcome};
use quarterdeck_host_wasm::{HostConfig, WasmHost, WasmInspector};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

const ENTRY: &str = "tool/handler.wasm";
/// `{"ok":true,"data":7}`, in the module's data.
const GOOD_ANSWER: u64 = (46 << 32) | 20;

/// The host must outlive its handler's calls, and so is never dropped.
static SCRIPTED: LazyLock<Arc<dyn Handler>> = LazyLock::new(|| {
    let text = include_str!("../../crates/host-wasm/tests/it/scripted.wat");
    let module = wat::parse_str(text).expect("the module is well-formed");
    let host = WasmHost::new(HostConfig { max_calls: 4, ..HostConfig::default() });
    let metadata: Metadata = serde_json::from_value(json!({
        "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100,
    }))
    .expect("the metadata is complete");
    let files = HandlerFiles::from([(ENTRY.to_owned(), module)]);
    host.load(HandlerToLoad { metadata: &metadata, entry: ENTRY, files: &files }).expect("it loads")
});

fuzz_target!(|data: &[u8]| {
    let files = HandlerFiles::from([(ENTRY.to_owned(), data.to_vec())]);
    let _ = WasmInspector.inspect(HandlerSource { entry: ENTRY, files: &files });

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let ended = run(json!(script(data))).await;
        assert!(!matches!(ended, Err(HostError::TimedOut { .. } | HostError::Busy { .. })), "{ended:?}");
        let good = run(json!([0, GOOD_ANSWER])).await.expect("the next call has an answer");
        assert_eq!(good, Outcome::Success(json!(7)));
    });
});

/// Instructions and operands, small and large. None of them begins a wait that only time ends.
fn script(data: &[u8]) -> Vec<u64> {
    let mut bytes = data.iter().take(256).copied();
    let mut numbers = Vec::new();
    while let Some(first) = bytes.next() {
        let width = match first {
            0..=199 => 0,
            200..=229 => 2,
            230..=244 => 4,
            245..=255 => 8,
        };
        let wide = (0..width).fold(0, |number, _| number << 8 | u64::from(bytes.next().unwrap_or_default()));
        numbers.push(if width == 0 { u64::from(first) % 64 } else { wide });
    }
    numbers
}

async fn run(args: Value) -> Result<Outcome, HostError> {
    let limits = Limits { timeout: Duration::from_secs(10) };
    let answer = SCRIPTED.run(args, FakeContext::new(), limits).await?;
    Ok(answer.outcome)
}
