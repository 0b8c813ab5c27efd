//! Handlers that mean harm. Each ends its own call and nothing else: after every one of them, a thousand ordinary calls
//! run on the same host as if nothing had happened, and take no longer than they did.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_js::JsHost;
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{AnswerMode, Slow, call, config, data, host, load, load_files, within};

/// How many ordinary calls follow each hostile one.
const AFTER_EACH: u64 = 1_000;
/// How much longer the median of them may take than on a host that was never attacked.
const SLOWER: f64 = 1.5;
/// A machine that is busy with something else can slow down either side of a comparison. So it is made again, and only
/// a host that is slower every time fails.
const COMPARISONS: usize = 5;

/// A host under attack, a handler that has nothing to do with it, and the same handler on a host at peace.
///
/// The host at peace stands for “before”: its calls are made in turn with those of the host under attack, so that what
/// else the machine does meanwhile falls on both.
struct Besieged {
    host: JsHost,
    ordinary: Arc<dyn Handler>,
    at_peace: Arc<dyn Handler>,
    _peace: JsHost,
}

impl Besieged {
    fn new() -> Self {
        let (host, peace) = (host(), host());
        let (ordinary, at_peace) = (ordinary(&host), ordinary(&peace));
        Self { host, ordinary, at_peace, _peace: peace }
    }

    /// Runs a hostile `execute` body within `ms`, then a thousand ordinary calls.
    async fn survive(&self, body: &str, ms: u64) -> HostError {
        let hostile = load(&self.host, &format!("export function execute({{ args, context }}) {{ {body} }}"));
        let start = Instant::now();
        let ended = hostile.run(json!({}), FakeContext::new(), within(ms)).await;
        let took = start.elapsed();
        assert!(took < Duration::from_millis(ms + 250), "answered after {took:?}");
        self.stands(body).await;
        ended.expect_err("the hostile handler fails")
    }

    /// A thousand ordinary calls, whose median is not much longer than at peace.
    async fn stands(&self, after: &str) {
        let mut seen = Vec::new();
        for _ in 0..COMPARISONS {
            let (now, before) = self.medians().await;
            if now.as_secs_f64() <= SLOWER * before.as_secs_f64() {
                return;
            }
            seen.push(format!("{now:?} against {before:?}"));
        }
        panic!("ordinary calls are slower after {after}: {}", seen.join(", "));
    }

    /// The median call here and at peace, of a thousand each, in turns of twenty.
    async fn medians(&self) -> (Duration, Duration) {
        const TURN: u64 = 20;
        let (mut here, mut at_peace) = (Vec::new(), Vec::new());
        for turn in 0..AFTER_EACH / TURN {
            let numbers = turn * TURN..(turn + 1) * TURN;
            calls(&self.ordinary, numbers.clone(), &mut here).await;
            calls(&self.at_peace, numbers, &mut at_peace).await;
        }
        (median(here), median(at_peace))
    }
}

async fn survive(body: &str, ms: u64) -> HostError {
    Besieged::new().survive(body, ms).await
}

fn ordinary(host: &JsHost) -> Arc<dyn Handler> {
    load(
        host,
        "export const execute = async ({ args }) => ({ ok: true, data: { n: args.n + 1, clean: globalThis.stain === undefined && [].stain === undefined } });",
    )
}

async fn a_thousand(handler: &Arc<dyn Handler>) {
    calls(handler, 0..1_000, &mut Vec::new()).await;
}

async fn calls(handler: &Arc<dyn Handler>, numbers: std::ops::Range<u64>, times: &mut Vec<Duration>) {
    for n in numbers {
        let start = Instant::now();
        let data = data(handler, json!({ "n": n })).await;
        times.push(start.elapsed());
        assert_eq!(data, json!({ "n": n + 1, "clean": true }));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn timed_out(error: &HostError) -> Option<bool> {
    match error {
        HostError::TimedOut { computing, .. } => Some(*computing),
        _ => None,
    }
}

#[tokio::test]
async fn endless_loops_end_at_the_deadline() {
    let besieged = Besieged::new();
    for body in [
        "while (true) {}",
        "for (;;) { try { while (true) {} } catch {} finally { continue; } }",
        "return Promise.resolve().then(() => { while (true) {} });",
        "const again = () => Promise.resolve().then(again); return again();",
        "(async () => { for (;;) { try { await null; while (true) {} } catch {} } })(); return new Promise(() => {});",
        "queueMicrotask(function f() { queueMicrotask(f); }); return new Promise(() => {});",
        "/^(a+)+$/.test('a'.repeat(40) + 'b');",
        "[1, 2, 3].sort(() => { for (;;); });",
        "JSON.stringify({ toJSON() { for (;;); } });",
        "return { ok: true, data: { toJSON() { for (;;); } } };",
        "return { get ok() { for (;;); } };",
        "return { then() { for (;;); } };",
        "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);",
        "throw { get type() { for (;;); } };",
        "function* g() { for (;;) yield 1; } return [...g()].length;",
        "new Proxy({}, { get() { for (;;); } }).x;",
    ] {
        let error = besieged.survive(body, 150).await;
        let memory = matches!(error, HostError::OverLimit("memory"));
        assert!(timed_out(&error) == Some(true) || memory, "{body}: {error}");
    }
}

#[tokio::test]
async fn hunger_for_memory_is_not_fed() {
    let besieged = Besieged::new();
    for body in [
        "let s = 'x'; for (;;) s += s;",
        "const all = []; for (;;) all.push(new Array(1000).fill(all.length));",
        "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));",
        "return { ok: true, data: new Uint8Array(1 << 30).length };",
        "const all = new Map(); for (let i = 0; ; i++) all.set(i, { i });",
        "return 'x'.repeat(100_000_000);",
        "return { ok: true, data: 'x'.repeat(60_000_000) };",
        "let n = 1n; for (;;) n = n * n + 3n ** 1000n;",
        "const all = []; for (;;) { try { for (;;) all.push('x'.repeat(1000) + all.length); } catch (e) { throw e; } }",
    ] {
        let error = besieged.survive(body, 5_000).await;
        let bounded = match &error {
            HostError::OverLimit("memory") => true,
            // The engine's own bounds on one string or one number lie lower than memory's.
            HostError::Crashed(message) => {
                message.contains("RangeError") || message.contains("no memory left")
            }
            _ => false,
        };
        assert!(bounded, "{body}: {error}");
    }
}

#[tokio::test]
async fn deep_recursion_ends() {
    let besieged = Besieged::new();
    for body in [
        "const f = () => f() + 1; f();",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return { ok: true, data: JSON.stringify(o).length };",
        "const o = {}; o.toString = () => `${o}`; `${o}`;",
        "return { ok: true, data: JSON.parse('['.repeat(1e6)) };",
        "'a'.replace(/a/, function f() { return 'a'.replace(/a/, f); });",
    ] {
        let error = besieged.survive(body, 5_000).await;
        let ended = matches!(&error, HostError::OverLimit("stack" | "memory") | HostError::Crashed(_));
        assert!(ended, "{body}: {error}");
    }
}

#[tokio::test]
async fn promises_that_never_settle_end_at_once_when_nothing_can_settle_them() {
    let start = Instant::now();
    let error = survive("return new Promise(() => {});", 60_000).await;
    assert!(error.to_string().contains("never settles"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
    let error = survive("setTimeout(() => {}, 60_000); return new Promise(() => {});", 100).await;
    assert_eq!(timed_out(&error), Some(false), "{error}");
}

#[tokio::test]
async fn strange_throws_are_crashes() {
    let besieged = Besieged::new();
    for (body, expected) in [
        ("throw 42", "42"),
        ("throw 'é'.repeat(1_000_000)", "…"),
        ("throw null", "null"),
        ("throw undefined", "undefined"),
        ("throw Symbol('s')", "Symbol(s)"),
        ("throw { get type() { throw 1; } }", "cannot be read"),
        (
            "throw new Proxy({}, { get() { throw 1; }, has() { throw 1; }, getPrototypeOf() { throw 1; } })",
            "cannot be read",
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw 1; } }); throw e",
            "Error: x",
        ),
        ("throw { toString() { throw 1; } }", "{}"),
        ("return { get then() { throw new Error('no then'); } }", "no then"),
        ("return { then(resolve, reject) { reject(7); } }", "7"),
        (
            "setTimeout(() => { throw new Error('late'); }, 1); return new Promise((r) => setTimeout(r, 50));",
            "late",
        ),
    ] {
        let error = besieged.survive(body, 2_000).await;
        let HostError::Crashed(message) = &error else { panic!("{body}: {error}") };
        assert!(message.contains(expected), "{body}: {message}");
    }
}

#[tokio::test]
async fn what_is_not_an_answer_is_said_to_be_none() {
    let besieged = Besieged::new();
    for body in [
        "",
        "return undefined",
        "return () => 1",
        "return 'ok'",
        "return [1]",
        "return { ok: 'yes' }",
        "return { ok: true, error: {} }",
        "return { ok: false }",
    ] {
        let error = besieged.survive(body, 2_000).await;
        assert!(matches!(error, HostError::BadAnswer(_)), "{body}: {error}");
    }
    for (body, expected) in [
        ("const a = { ok: true }; a.data = a; return a", "circular"),
        ("return { ok: true, data: 1n }", "bigint"),
        ("return { ok: true, data: { get x() { throw new Error('unread'); } } }", "unread"),
        ("let d = []; for (let i = 0; i < 500; i++) d = [d]; return { ok: true, data: d }", "recursion"),
    ] {
        let error = besieged.survive(body, 2_000).await;
        let HostError::Crashed(message) = &error else { panic!("{body}: {error}") };
        assert!(message.to_lowercase().contains(expected), "{body}: {message}");
    }
    let error = besieged.survive("return { ok: true, data: 'x'.repeat(2_000_000) }", 2_000).await;
    assert!(matches!(error, HostError::OverLimit("answer size")), "{error}");
    let error = besieged.survive("return { ok: true, data: 'é'.repeat(600_000) }", 2_000).await;
    assert!(matches!(error, HostError::OverLimit("answer size")), "{error}");
    let error = besieged.survive("throw { type: 'PERMANENT', message: 'x'.repeat(2_000_000) }", 2_000).await;
    assert!(matches!(error, HostError::OverLimit("answer size")), "{error}");
}

#[tokio::test]
async fn nothing_survives_a_call() {
    let host = host();
    let handler = load(
        &host,
        "let calls = 0;
         export function execute() {
           const seen = [globalThis.stain, {}.stain, calls, Math.stain, Object.stain];
           globalThis.stain = 1; Object.prototype.stain = 1; Math.stain = 1; Object.stain = 1; calls++;
           return { ok: true, data: seen.map((value) => value ?? null) };
         }",
    );
    let clean = json!([null, null, 0, null, null]);
    for _ in 0..50 {
        assert_eq!(data(&handler, json!({})).await, clean);
    }
    a_thousand(&ordinary(&host)).await;
}

#[tokio::test]
async fn there_is_no_way_to_make_code_and_none_out_of_the_engine() {
    let host = host();
    let handler = load(
        &host,
        "const attempt = (f) => { try { return String(f()); } catch (error) { return 'refused'; } };
         export function execute() {
           return { ok: true, data: [
             attempt(() => eval('1 + 1')), attempt(() => (0, eval)('1 + 1')), attempt(() => new Function('return 1')()),
             attempt(() => (() => {}).constructor('return 1')()), attempt(() => (async () => {}).constructor('return 1')()),
             attempt(() => Atomics.wait), attempt(() => new SharedArrayBuffer(1)),
             typeof process, typeof require, typeof Deno, typeof std, typeof os, typeof WebAssembly, typeof XMLHttpRequest,
             Object.keys(globalThis).length,
           ] };
         }",
    );
    assert_eq!(
        data(&handler, json!({})).await,
        json!([
            "refused",
            "refused",
            "refused",
            "refused",
            "refused",
            "refused",
            "refused",
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            0
        ])
    );
}

#[tokio::test]
async fn replacing_the_language_fools_only_the_handler() {
    let host = host();
    let handler = load(
        &host,
        "export async function execute({ args, context }) {
           const lie = () => { throw new Error('fooled'); };
           JSON.parse = JSON.stringify = lie;
           Promise.prototype.then = Promise.prototype.catch = Promise.resolve = lie;
           Object.freeze = Object.keys = Object.defineProperty = Reflect.apply = lie;
           Array.prototype[Symbol.iterator] = Array.prototype.map = Array.prototype.push = lie;
           Map.prototype.get = String.prototype.toWellFormed = Function.prototype.call = Function.prototype.apply = lie;
           globalThis.Promise = globalThis.Error = globalThis.Object = globalThis.String = lie;
           console.log('still', { here: 1 });
           context.audit.log('e', { a: 1 });
           await context.store.put('k', 'v');
           const value = await context.store.get('k');
           const Own = (async () => {})().constructor; await new Own((done) => setTimeout(done, 1));
           return { ok: true, data: { value, n: args.n } };
         }",
    );
    let context = FakeContext::new();
    let answer = handler.run(json!({ "n": 1 }), context.clone(), within(2_000)).await.unwrap();
    assert_eq!(
        serde_json::to_value(answer).unwrap(),
        json!({ "ok": true, "data": { "value": "v", "n": 1 } })
    );
    let effects = context.recorded();
    assert_eq!((effects.logs.len(), effects.audits.len()), (1, 1));
    a_thousand(&ordinary(&host)).await;
}

#[tokio::test]
async fn the_context_cannot_be_changed() {
    let host = host();
    let handler = load(
        &host,
        "export function execute({ context }) {
           const attempt = (f) => { try { f(); return 'done'; } catch { return 'refused'; } };
           return { ok: true, data: [
             attempt(() => { context.clientId = 'other'; }), attempt(() => { context.session.state.mode = 'voice'; }),
             attempt(() => { context.messaging.send = null; }), attempt(() => { context.extra = 1; }),
             attempt(() => { context.capabilities.kb = true; }), context.clientId,
           ] };
         }",
    );
    assert_eq!(
        data(&handler, json!({})).await,
        json!(["refused", "refused", "refused", "refused", "refused", "client_1"])
    );
}

#[tokio::test]
async fn polluted_prototypes_change_no_answer_of_the_hosts() {
    let error = survive(
        "Object.prototype.then = (r) => r({ ok: true }); Object.prototype.type = 'PERMANENT'; throw 5;",
        2_000,
    )
    .await;
    assert!(matches!(&error, HostError::Crashed(message) if message == "5"), "{error}");
}

#[tokio::test]
async fn imports_outside_the_folder_are_refused() {
    let host = host();
    let outside = [
        (
            "tool/handler.js",
            "import { secret } from '../other/handler.js'; export const execute = () => secret;",
        ),
        ("other/handler.js", "export const secret = 1;"),
    ];
    assert!(matches!(load_files(&host, &outside, &[]), Err(HostError::FailedToLoad(_))));
    for specifier in [
        "../other/handler.js",
        "quarterdeck:prelude",
        "quarterdeck:web",
        "node:fs",
        "/etc/passwd",
        "https://example.com/x.js",
        "file:///etc/passwd",
    ] {
        let body = format!("return import('{specifier}').then(() => ({{ ok: true }}));");
        let handler = load(&host, &format!("export function execute() {{ {body} }}"));
        let error = call(&handler, json!({})).await.expect_err(specifier);
        assert!(matches!(error, HostError::Crashed(_)), "{specifier}: {error}");
    }
}

#[tokio::test]
async fn talking_too_much_is_cut_short() {
    let host = host();
    let handler = load(
        &host,
        "export function execute({ context }) {
           for (let i = 0; i < 1e5; i++) { console.log('x'.repeat(100)); context.progress('p'); context.audit.log('a'); }
           return { ok: true };
         }",
    );
    let context = FakeContext::new();
    handler.run(json!({}), context.clone(), within(10_000)).await.unwrap();
    let effects = context.recorded();
    assert!(effects.logs.len() < 1_000 && effects.progress.len() < 3_000 && effects.audits.len() < 3_000);
    assert!(effects.logs.iter().any(|(_, line)| line.contains("went over its limit")));
    let error = survive("for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e6);", 2_000).await;
    assert!(error.to_string().contains("too many"), "{error}");
    let error = survive("for (;;) clearTimeout(setTimeout(() => {}, 1e6));", 5_000).await;
    assert!(error.to_string().contains("too many"), "{error}");
}

#[tokio::test]
async fn an_ordinary_call_finishes_while_every_thread_is_in_an_endless_loop() {
    let host = JsHost::new(config()).unwrap();
    let ordinary = ordinary(&host);
    let endless = load(&host, "export const execute = () => { while (true) {} };");
    let running: Vec<_> =
        (0..4).map(|_| tokio::spawn(endless.run(json!({}), FakeContext::new(), within(4_000)))).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    for n in 0..5 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await["n"], n + 1);
    }
    assert!(
        running.iter().all(|call| !call.is_finished()),
        "the loops ended early, or the calls took {:?}",
        start.elapsed()
    );
    for call in running {
        assert_eq!(timed_out(&call.await.unwrap().unwrap_err()), Some(true));
    }
    a_thousand(&ordinary).await;
}

/// A search for a long text in a long text is one native operation of the engine.
#[tokio::test]
async fn a_long_native_operation_is_stopped_at_the_deadline() {
    let error = survive("return 'a'.repeat(400_000).indexOf('a'.repeat(100_000) + 'b');", 100).await;
    assert_eq!(timed_out(&error), Some(true), "{error}");
}

#[tokio::test]
async fn a_panic_of_the_runtime_ends_the_call_that_met_it() {
    let besieged = Besieged::new();
    let handler =
        load(&besieged.host, "export const execute = () => { console.log('panic'); return { ok: true }; };");
    let error = handler.run(json!({}), Slow::new(AnswerMode::Never), within(2_000)).await.unwrap_err();
    assert!(matches!(error, HostError::Crashed(_)), "{error}");
    besieged.stands("a panic").await;
}

#[tokio::test]
async fn call_sites_and_stack_hooks_lead_nowhere() {
    let besieged = Besieged::new();
    let body = "const found = [];
        Error.prepareStackTrace = (error, sites) => { for (const site of sites) found.push(typeof site.getFunction?.()); return { get length() { throw 1; } }; };
        new Error('x').stack;
        Error.stackTraceLimit = 1e9;
        throw new Error('seen');";
    let error = besieged.survive(body, 2_000).await;
    assert!(matches!(error, HostError::Crashed(_)), "{error}");
    let reentrant = "Error.prepareStackTrace = () => { console.log('again'); try { setTimeout(() => {}); } catch {} Math.random(); Date.now(); };
        for (;;) setTimeout(() => {}, 1e6);";
    let error = besieged.survive(reentrant, 2_000).await;
    assert!(matches!(error, HostError::Crashed(_) | HostError::OverLimit("stack")), "{error}");
}

/// QuickJS does not survive a lack of memory while it reads bytecode, so nothing may make it read any by then.
#[tokio::test]
async fn an_import_with_no_memory_left_is_an_error_and_not_the_end_of_the_process() {
    let besieged = Besieged::new();
    let files = [
        (
            "tool/handler.js",
            "export async function execute() {
               const all = [];
               for (let size = 1 << 20; size >= 16; size >>= 1) { try { for (;;) all.push(new ArrayBuffer(size)); } catch {} }
               for (let tries = 0; tries < 200; tries++) {
                 try { await import('./other.js'); break; } catch { all.pop(); }
                 try { globalThis['structured' + 'Clone']({}); } catch {}
               }
               throw new Error('survived');
             }",
        ),
        ("tool/other.js", "import { ToolError } from 'quarterdeck'; export class Other extends ToolError {}"),
    ];
    let handler = load_files(&besieged.host, &files, &[]).unwrap();
    let ended = call(&handler, json!({})).await;
    assert!(matches!(&ended, Err(HostError::Crashed(_) | HostError::OverLimit("memory"))), "{ended:?}");
    besieged.stands("an import without memory").await;
}
