//! What only the inside of a host can show: memories before and after calls.

use std::collections::BTreeMap;
use std::time::Duration;

use quarterdeck_contracts::handler::Limits;
use quarterdeck_contracts::{Metadata, Outcome};
use quarterdeck_host_wasm::{Calls, Code};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use wasmtime::{Instance, Store};

use super::*;
use crate::handler::Prepared;
use crate::js_engine::image;
use crate::program::Image;

const LIMITS: Limits = Limits { timeout: Duration::from_secs(10) };

fn handler(host: &JsHost, source: &str) -> JsHandler {
    let metadata: Metadata = serde_json::from_value(json!({
        "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100,
    }))
    .unwrap();
    let files = BTreeMap::from([("tool/handler.js".to_owned(), source.as_bytes().to_vec())]);
    let handler = HandlerToLoad { metadata: &metadata, entry: "tool/handler.js", files: &files };
    JsHandler::load(&host.0, handler).unwrap()
}

async fn run(handler: &JsHandler, args: Value) -> Result<Outcome, HostError> {
    Ok(handler.run(args, FakeContext::new(), LIMITS).await?.outcome)
}

/// Numbers that look random and are the same in every run.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    })
}

/// Every slot of the engine is taken and its memory searched, after calls whose arguments were all over the heap.
#[tokio::test]
async fn no_byte_of_a_call_is_in_the_memory_of_a_later_one() {
    const CALLS: usize = 200;
    let canary = |call: usize| format!("canary-{call:04}-in-the-memory");
    let host = JsHost::new(HostConfig { max_calls: 16, ..HostConfig::default() }).unwrap();
    let source = "export async function execute({ args, context }) {
        globalThis.kept = [args.text.repeat(50), new Map([[args.text, args]]), JSON.stringify(args).toUpperCase()];
        if (args.grows) globalThis.more = Array.from({ length: 2000 }, (_, i) => args.text + i);
        await context.kb.search({ query: args.text });
        return { ok: true, data: args.text };
      }";
    let tool = handler(&host, source);
    for call in 0..CALLS {
        let answer = run(&tool, json!({ "text": canary(call), "grows": call % 10 == 0 })).await.unwrap();
        assert_eq!(answer, Outcome::Success(json!(canary(call))));
    }
    // The memory of the last call is cleared when its task waits.
    tokio::task::yield_now().await;
    let Prepared { program, calls: Calls { engine, .. }, .. } = tool.prepared();
    let image =
        Module::new(engine.wasmtime(), crate::guest::image_module(&program.image().unwrap().0)).unwrap();
    // The second round finds nothing of what the first has written into every slot itself.
    for _ in 0..2 {
        let mut stores = Vec::new();
        // One more than there are calls, for the one that is cleared last.
        for _ in 0..=16 {
            let mut store = Store::new(engine.wasmtime(), ());
            store.set_epoch_deadline(1);
            let instance = Instance::new_async(&mut store, &image, &[]).await.unwrap();
            let memory = instance.get_memory(&mut store, "memory").unwrap();
            // As far as a call could have grown it.
            memory.grow_async(&mut store, 64).await.unwrap();
            assert_eq!(find_canary(memory.data(&store)), None, "of {} bytes", memory.data_size(&store));
            for page in memory.data_mut(&mut store).chunks_mut(4 << 10) {
                page[..7].copy_from_slice(b"canary-");
            }
            assert_eq!(find_canary(memory.data(&store)), Some(0), "the search finds what is there");
            stores.push(store);
        }
    }
}

fn find_canary(memory: &[u8]) -> Option<usize> {
    find(memory, b"canary-").or_else(|| find(memory, b"CANARY-"))
}

fn find(memory: &[u8], what: &[u8]) -> Option<usize> {
    memory.windows(what.len()).position(|window| window == what)
}

/// A mistake in the C of the engine: the guest of these tests has some (`guest/faults.c`).
#[tokio::test]
async fn a_fault_in_the_engine_ends_its_call_and_nothing_else() {
    const CALLS_AFTER: u64 = 10_000;
    let host = JsHost::new(HostConfig { max_calls: 4, ..HostConfig::default() }).unwrap();
    let source = "export async function execute({ args, context }) {
        globalThis.encoded = new TextEncoder().encode(args.text);
        await context.kb.search({ query: [args.n, {}, new Map([[args, /a/]]).size] });
        return { ok: true, data: args.n + 1 };
      }";
    let tool = handler(&host, source);
    let call = |text: &str, n: u64| {
        let limits = Limits { timeout: Duration::from_millis(200) };
        tool.run(json!({ "text": text, "n": n }), FakeContext::new(), limits)
    };
    for fault in ["write", "overwrite", "call", "read", "recurse"] {
        let ended = call(&format!("fault:{fault}"), 1).await;
        let is_contained = match fault {
            "recurse" => matches!(ended, Err(HostError::OverLimit("stack") | HostError::Crashed(_))),
            _ => matches!(ended, Err(HostError::Crashed(_))),
        };
        assert!(is_contained, "{fault}: {ended:?}");
        for n in 0..50 {
            assert_eq!(call("sound", n).await.unwrap().outcome, Outcome::Success(json!(n + 1)), "{fault}");
        }
    }
    assert!(matches!(call("fault:loop", 1).await, Err(HostError::TimedOut { computing: true, .. })));
    for n in 0..CALLS_AFTER {
        assert_eq!(call("sound", n).await.unwrap().outcome, Outcome::Success(json!(n + 1)));
    }
    assert_eq!(host.stats().calls, 0);
}

/// What a fault in QuickJS's C would do: bytes of its heap are overwritten, wherever. The call ends somehow, mostly in a trap; the
/// server goes on, and so does every other call.
#[tokio::test]
async fn overwritten_memory_ends_its_call_and_nothing_else() {
    const FAULTS: u64 = 200;
    const CALLS_AFTER: u64 = 10_000;
    let host = JsHost::new(HostConfig::default()).unwrap();
    let source = "const table = new Map([['a', 1], ['b', [1, 2, 3]]]);
      export async function execute({ args }) {
        const all = [...table.entries(), ...Object.keys(args)].map((entry) => JSON.stringify(entry));
        return { ok: true, data: args.n + (all.length > 0 ? 1 : 0) };
      }";
    let sound = handler(&host, source);
    let of_sound = sound.prepared();
    let engine_code = host.0.started().unwrap().code;
    let Image(memory) = of_sound.program.image().unwrap();
    let mut crashed = 0;
    for fault in 0..FAULTS {
        let mut broken = memory.clone();
        let heap = crate::guest::STACK_BYTES as u64..memory.len() as u64;
        let mut random = numbers(fault);
        for _ in 0..=fault {
            let at = heap.start + random.next().unwrap() % (heap.end - heap.start);
            broken[at as usize] = random.next().unwrap() as u8;
        }
        let image = image(&of_sound.calls.engine, &broken).unwrap();
        let code = Code::with_image(&of_sound.calls.engine, &engine_code, &image).unwrap();
        let unsound = Prepared { code: Arc::new(code), ..of_sound.clone() };
        let limits = Limits { timeout: Duration::from_millis(100) };
        match unsound.run(sound.slot(), json!({ "n": 1 }), FakeContext::new(), limits).await {
            Err(HostError::Crashed(_)) => crashed += 1,
            Err(HostError::OverLimit(_) | HostError::TimedOut { .. } | HostError::BadAnswer(_)) | Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
        let answer = run(&sound, json!({ "n": fault })).await.unwrap();
        assert_eq!(answer, Outcome::Success(json!(fault + 1)));
    }
    assert!(crashed > FAULTS / 20, "{crashed} of {FAULTS} faults were seen");
    for n in 0..CALLS_AFTER {
        assert_eq!(run(&sound, json!({ "n": n })).await.unwrap(), Outcome::Success(json!(n + 1)));
    }
}
