//! What handlers see and what becomes of what they do.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::handler::{CapabilityErrorCode, Handler, HandlerHost, HandlerToLoad, LogLevel};
use quarterdeck_contracts::{CapabilitySpec, HandlerAnswer, Outcome};
use quarterdeck_host_js::JsHost;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::world::{AnswerMode, Slow, TEN_SECONDS, call, config, data, eval, fails, host, load, load_files};

#[tokio::test]
async fn arguments_go_in_and_answers_come_out() {
    let host = host();
    let handler = load(
        &host,
        "export function execute({ args }) {
           return { ok: true, data: { doubled: args.n * 2, text: args.text }, intents: [{ type: 'SUPPRESS_AUDIO', value: true }] };
         }",
    );
    let answer = call(&handler, json!({ "n": 21, "text": "\"ünï\u{0}\u{2028}😀" })).await.unwrap();
    assert_eq!(answer.outcome, Outcome::Success(json!({ "doubled": 42, "text": "\"ünï\u{0}\u{2028}😀" })));
    assert_eq!(answer.intents.len(), 1);
}

#[tokio::test]
async fn the_context_is_what_the_contract_says() {
    let host = host();
    let handler = load(
        &host,
        "export async function execute({ context }) {
           const { clientId, mode, callId, tool, call, session, capabilities } = context;
           return { ok: true, data: { clientId, mode, callId, tool, call, session, capabilities,
             speaking: context.voice.isActive(), names: Object.keys(context).sort() } };
         }",
    );
    assert_eq!(
        data(&handler, json!({})).await,
        json!({
            "clientId": "client_1", "mode": "text", "callId": "call_1",
            "tool": { "id": "tool", "version": "1.0.0", "idempotent": true },
            "call": { "id": "call_1", "clamped": {} },
            "session": { "id": "session_1", "isActive": true, "turn": 1, "toolsVersion": "1.0.00000000",
                         "state": { "isActive": true, "mode": "text" } },
            "capabilities": { "messaging": true, "voice": false, "audit": true, "progress": true, "calendar": true,
                              "images": true, "kb": true, "moderation": true, "store": true, "tools": true },
            "speaking": false,
            "names": ["audit", "calendar", "call", "callId", "callTool", "capabilities", "client", "clientId", "emit",
                      "images", "kb", "messaging", "mode", "progress", "session", "signal", "store", "tool", "voice"],
        })
    );
}

#[tokio::test]
async fn capabilities_do_their_work() {
    let host = host();
    let handler = load(
        &host,
        "export async function execute({ context }) {
           await context.store.put('a', { n: 1 });
           const [a, none] = await Promise.all([context.store.get('a'), context.store.get('b')]);
           await context.messaging.send({ type: 'note' });
           context.messaging.send({ type: 'not waited for' });
           context.audit.log('looked', { at: 1 });
           context.progress('half way');
           console.warn('careful', { x: 1 }, 2);
           return { ok: true, data: { a, none } };
         }",
    );
    let context = FakeContext::new();
    let answer = handler.run(json!({}), context.clone(), TEN_SECONDS).await.unwrap();
    assert_eq!(answer, HandlerAnswer::success(json!({ "a": { "n": 1 }, "none": null })));
    let effects = context.recorded();
    assert_eq!(effects.messages, [json!({ "type": "note" }), json!({ "type": "not waited for" })]);
    assert_eq!(effects.audits, [("looked".to_owned(), json!({ "at": 1 }))]);
    assert_eq!(effects.progress, ["half way"]);
    assert_eq!(effects.logs, [(LogLevel::Warn, "careful {\"x\":1} 2".to_owned())]);
}

#[tokio::test]
async fn registered_capability_is_a_member_of_the_context() {
    const WEATHER: CapabilitySpec = CapabilitySpec::new("weather", "The weather.", &["today", "tomorrow"]);
    let mut config = config();
    config.capabilities.push(WEATHER);
    let host = JsHost::new(config).unwrap();
    let source = "export async function execute({ context }) {
        return { ok: true, data: [await context.weather.tomorrow('Oslo', 2), context.capabilities.weather] };
    }";
    let context = FakeContext::new();
    context.provide(WEATHER.capability(), |method, args| Ok(json!({ "method": method, "args": args })));
    let answer = load(&host, source).run(json!({}), context, TEN_SECONDS).await.unwrap();
    let expected = json!([{ "method": "tomorrow", "args": ["Oslo", 2] }, false]);
    assert_eq!(answer, HandlerAnswer::success(expected));
}

#[tokio::test]
async fn a_failing_capability_can_be_caught_and_otherwise_becomes_the_fitting_error() {
    let host = host();
    let catching = load(
        &host,
        "export async function execute({ context }) {
           try { await context.kb.search({ query: 'x' }); } catch (error) {
             const { code, message, retryAfter } = error;
             return { ok: true, data: { code, message, retryAfter, is: error instanceof Error } };
           }
         }",
    );
    let letting = load(
        &host,
        "export const execute = ({ context }) => context.kb.search({ query: 'x' }).then((data) => ({ ok: true, data }));",
    );
    let limited = || Slow::new(AnswerMode::Failing(CapabilityErrorCode::RateLimit, Some(1.5)));
    let caught = catching.run(json!({}), limited(), TEN_SECONDS).await.unwrap();
    assert_eq!(
        caught,
        HandlerAnswer::success(
            json!({ "code": "RATE_LIMIT", "message": "it did not work", "retryAfter": 1.5, "is": true })
        )
    );
    let uncaught = letting.run(json!({}), limited(), TEN_SECONDS).await.unwrap();
    let Outcome::Failure(error) = uncaught.outcome else { panic!("{uncaught:?}") };
    assert_eq!(
        (error.kind.as_str(), error.retry_after_ms, error.retryable),
        ("RATE_LIMIT", Some(1_500), true)
    );
}

#[tokio::test]
async fn thrown_errors_with_a_type_are_failures() {
    let host = host();
    let own = load_files(
        &host,
        &[(
            "tool/handler.js",
            "import { ToolError, ErrorType } from '../_core/error-types.js';
             export const execute = () => { throw new ToolError(ErrorType.RATE_LIMIT, 'slow down', { retryAfter: 2, retryable: true, details: { n: 1 } }); };",
        )],
        &[],
    )
    .unwrap();
    let answer = call(&own, json!({})).await.unwrap();
    assert_eq!(
        serde_json::to_value(&answer).unwrap(),
        json!({ "ok": false, "error": { "type": "RATE_LIMIT", "message": "slow down", "retryable": true,
            "details": { "n": 1 }, "partialSideEffects": false, "idempotencyRequired": false, "retryAfterMs": 2000 } })
    );
    assert_eq!(
        fails("throw { type: 'NOT_FOUND', message: 'gone' }").await,
        r#"failure: {"type":"NOT_FOUND","message":"gone","retryable":false}"#
    );
    assert_eq!(
        fails("throw Object.assign(new Error('odd'), { type: 'STRANGE' })").await,
        r#"failure: {"type":"PERMANENT","message":"odd","retryable":false,"details":{"type":"STRANGE"}}"#
    );
    assert!(
        fails("throw { type: 'CONFIRMATION_REQUIRED', message: 'ask' }").await.contains("not a handler's")
    );
    let returned = "return { ok: false, error: { type: 'CONFIRMATION_DENIED', message: 'no' } }";
    assert!(fails(returned).await.contains("not a handler's"));
}

#[tokio::test]
async fn other_throws_are_crashes_that_say_where() {
    let message = fails("null.x").await;
    assert!(message.contains("TypeError") && message.contains("tool/handler.js:1"), "{message}");
}

#[tokio::test]
async fn time_is_the_calls_own() {
    let data = eval(
        "const before = Date.now();
         for (let i = 0; i < 1e5; i++);
         return [before, Date.now(), new Date().toISOString(), new Date(0).getTime(), typeof Date(), new Date() instanceof Date,
                 Date.UTC(2020, 1), new (class Mine extends Date {})().getTime(), Date.prototype.constructor === Date];",
    )
    .await;
    assert_eq!(
        data,
        json!([
            1_768_294_800_000_u64,
            1_768_294_800_000_u64,
            "2026-01-13T09:00:00.000Z",
            0,
            "string",
            true,
            1_580_515_200_000_u64,
            1_768_294_800_000_u64,
            true
        ])
    );
}

#[tokio::test]
async fn timers_fire_in_order_and_can_be_cleared() {
    let data = eval(
        "const order = [];
         const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
         setTimeout((word) => order.push(word), 20, 'late');
         setTimeout(() => order.push('early'), 5);
         const never = setTimeout(() => order.push('never'), 1);
         clearTimeout(never);
         queueMicrotask(() => order.push('first'));
         await sleep(40);
         return order;",
    )
    .await;
    assert_eq!(data, json!(["first", "early", "late"]));
}

#[tokio::test]
async fn chance_differs_from_call_to_call() {
    let host = host();
    let handler = load(
        &host,
        "export const execute = () => ({ ok: true, data: { n: Math.random(), id: crypto.randomUUID(), bytes: [...crypto.getRandomValues(new Uint8Array(4))] } });",
    );
    let (one, other) = (data(&handler, json!({})).await, data(&handler, json!({})).await);
    assert_ne!(one["n"], other["n"]);
    assert_ne!(one["id"], other["id"]);
    assert_ne!(one["bytes"], other["bytes"]);
    let id = one["id"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "4"));
}

#[tokio::test]
async fn the_web_platform_is_there_as_far_as_handlers_need_it() {
    let data = eval(
        "const url = new URL('../b?x=1&y=a%20b#h', 'https://user@example.com:8443/a/c/');
         url.searchParams.append('z', 'ä&');
         url.pathname = '/new path';
         const params = new URLSearchParams({ q: 'a b', r: '1' });
         params.set('r', '2'); params.delete('none');
         let invalid; try { new URL('nope'); } catch (error) { invalid = error.name; }
         return { href: url.href, host: url.host, y: url.searchParams.get('y'), params: `${params}`, pairs: [...params], invalid,
                  can: URL.canParse('https://a'), json: JSON.stringify({ url }) };",
    )
    .await;
    assert_eq!(
        data,
        json!({ "href": "https://user@example.com:8443/new%20path?x=1&y=a+b&z=%C3%A4%26#h", "host": "example.com:8443",
                "y": "a b", "params": "q=a+b&r=2", "pairs": [["q", "a b"], ["r", "2"]], "invalid": "TypeError",
                "can": true, "json": "{\"url\":\"https://user@example.com:8443/new%20path?x=1&y=a+b&z=%C3%A4%26#h\"}" })
    );
    let text = eval(
        "const bytes = new TextEncoder().encode('aé€😀\\ud800');
         const decoder = new TextDecoder();
         let fatal; try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])); } catch (error) { fatal = error.name; }
         return [[...bytes], decoder.decode(bytes), decoder.decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xe2, 0x82, 0x41, 0xc0, 0x80]).buffer), fatal];",
    )
    .await;
    assert_eq!(
        text,
        json!([
            [97, 195, 169, 226, 130, 172, 240, 159, 152, 128, 239, 191, 189],
            "aé€😀\u{fffd}",
            "a\u{fffd}A\u{fffd}\u{fffd}",
            "TypeError"
        ])
    );
    let cloned = eval(
        "const original = { date: new Date(5), set: new Set([1]), map: new Map([['k', { v: 1 }]]), bytes: new Uint8Array([1, 2]), list: [1, , 3], re: /x/gi, big: 10n };
         original.self = original;
         const copy = structuredClone(original);
         original.map.get('k').v = 2;
         let refused; try { structuredClone({ f() {} }); } catch (error) { refused = error.name; }
         return [copy !== original, copy.self === copy, copy.date.getTime(), [...copy.set], copy.map.get('k').v, [...copy.bytes], copy.list.length, `${copy.re}`, copy.big === 10n, refused];",
    )
    .await;
    assert_eq!(cloned, json!([true, true, 5, [1], 1, [1, 2], 3, "/x/gi", true, "DataCloneError"]));
}

#[tokio::test]
async fn the_language_is_whole_but_for_eval() {
    let data = eval(
        "return [/(?<y>\\d{4})/u.exec('in 2026').groups.y, new RegExp('a+').test('aa'), new Map([[1, 2]]).get(1), 2n ** 64n + '',
                 new Proxy({}, { get: () => 7 }).x, [3, 1, 2].toSorted(), Object.groupBy([1, 2], (n) => n % 2 ? 'odd' : 'even').odd,
                 new WeakRef(Map).deref() === Map];",
    )
    .await;
    assert_eq!(data, json!(["2026", true, 2, "18446744073709551616", 7, [1, 2, 3], [1], true]));
}

#[tokio::test]
async fn files_of_the_folder_import_each_other_statically_and_dynamically() {
    let host = host();
    let files = [
        ("tool/handler.js", "import { one } from './lib/one.js'; import { validateToolResponse } from 'quarterdeck';
            export async function execute() {
              const { two } = await import('./lib/two.js');
              let refused; try { await import('../other/handler.js'); } catch (error) { refused = error.message; }
              return { ok: true, data: { sum: one + two, valid: validateToolResponse({ ok: true }).ok, refused } };
            }"),
        ("tool/lib/one.js", "export { two as one } from './two.js';"),
        ("tool/lib/two.js", "export const two = 2;"),
        ("other/handler.js", "export const execute = 1;"),
    ];
    let handler = load_files(&host, &files, &[]).unwrap();
    let data = data(&handler, json!({})).await;
    assert_eq!((&data["sum"], &data["valid"]), (&json!(4), &json!(true)));
    assert!(data["refused"].as_str().unwrap().contains("outside the tool's own folder"), "{data}");
}

/// Handlers of the older form call it before they return, and rely on the exception.
#[tokio::test]
async fn validating_an_answer_throws_what_is_wrong_with_it_and_returns_what_is_not() {
    let host = host();
    let source = "import { validateToolResponse } from '../shared/tool-response.js';
        export async function execute({ args }) {
          try { return { ok: true, data: validateToolResponse(args.response) === args.response }; }
          catch (error) { return { ok: true, data: `${error.name}: ${error.message}` }; }
        }";
    let handler = load(&host, source);
    for good in [
        json!({ "ok": true }),
        json!({ "ok": true, "data": null, "intents": [] }),
        json!({ "ok": false, "error": { "type": "NOT_FOUND", "message": "No." } }),
    ] {
        assert_eq!(data(&handler, json!({ "response": good })).await, true);
    }
    for (bad, reason) in [
        (json!(null), "it is not an object"),
        (json!([]), "it is not an object"),
        (json!({}), "`ok` is missing or not a boolean"),
        (json!({ "ok": true, "error": {} }), "`ok` is true and `error` is present"),
        (
            json!({ "ok": false, "data": 1 }),
            "`ok` is false and `data` is present; `error.type` is missing; `error.message` is missing",
        ),
        (json!({ "ok": true, "intents": {} }), "`intents` is not an array"),
    ] {
        let thrown = data(&handler, json!({ "response": bad })).await;
        assert_eq!(thrown, format!("TypeError: Invalid tool response: {reason}"));
    }
    let throwing = load(&host, "import { validateToolResponse } from './error-types.js';
        export const execute = () => { const answer = { ok: 'yes' }; validateToolResponse(answer); return answer; };");
    let error = call(&throwing, json!({})).await.unwrap_err().to_string();
    assert!(error.contains("`ok` is missing or not a boolean"), "{error}");
}

#[test]
fn what_cannot_run_cannot_be_loaded() {
    let host = host();
    let reason = |source: &str| match load_files(&host, &[("tool/handler.js", source)], &[]) {
        Ok(_) => panic!("loaded: {source}"),
        Err(error) => error.to_string(),
    };
    assert!(reason("export function execute( {").contains("handler cannot be loaded"));
    assert!(reason("export const run = 1;").contains("execute"));
    assert!(reason("export const execute = 5;").contains("execute"));
    assert!(reason("throw new Error('early'); export const execute = () => 1;").contains("early"));
    assert!(reason("import '../x/y.js'; export const execute = () => 1;").contains("outside"));
    assert!(
        reason("import 'node:fs'; export const execute = () => 1;").contains("handlers have no packages")
    );
    assert!(reason("while (true) {} export const execute = () => 1;").contains("too long"));
    assert!(
        reason("await new Promise(() => {}); export const execute = () => 1;").contains("never finishes")
    );
    assert!(
        reason("setTimeout(() => {}, 1); export const execute = () => 1;").contains("only while a call runs")
    );
}

#[tokio::test]
async fn half_characters_pass_as_replacements() {
    assert_eq!(eval("console.log('\\ud800'); return '\\ud83d' + 'x';").await, json!("\u{fffd}x"));
}

#[tokio::test]
async fn waiting_does_not_hold_still_what_else_a_handler_does() {
    let host = host();
    let handler = load(
        &host,
        "export async function execute({ context }) {
           const all = await Promise.all([1, 2, 3].map((n) => context.kb.search({ n })));
           return { ok: true, data: all.map(([{ n }]) => n) };
         }",
    );
    let context = Slow::new(AnswerMode::After(Duration::from_millis(400)));
    let start = std::time::Instant::now();
    let answer = handler.run(json!({}), context, TEN_SECONDS).await.unwrap();
    assert_eq!(answer, HandlerAnswer::success(json!([1, 2, 3])));
    assert!(start.elapsed() < Duration::from_millis(1_100), "{:?}", start.elapsed());
}

#[tokio::test]
async fn tools_call_tools() {
    let host = host();
    let inner = load(&host, "export const execute = () => ({ ok: true, data: 'inner' });");
    let outer = load(
        &host,
        "export const execute = async ({ context }) => ({ ok: true, data: await context.callTool('inner', {}) });",
    );
    let answer = outer.run(json!({}), Slow::new(AnswerMode::Calling(inner, 1)), TEN_SECONDS).await.unwrap();
    assert_eq!(answer, HandlerAnswer::success(json!({ "ok": true, "data": "inner" })));
}

#[tokio::test]
async fn real_tools_run() {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");
    let host = host();
    let load = |folder: &str| -> Arc<dyn Handler> {
        let mut files = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(format!("{tools}/{folder}")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "js") {
                let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
        let schema = std::fs::read_to_string(format!("{tools}/{folder}/schema.json")).unwrap();
        let metadata = serde_json::from_str(&schema).unwrap();
        let entry = format!("{folder}/handler.js");
        host.load(HandlerToLoad { metadata: &metadata, entry: &entry, files: &files }).unwrap()
    };
    let answer: Value = data(&load("validate-email"), json!({ "email": " Ann@EXAMPLE.com " })).await;
    assert_eq!((&answer["valid"], &answer["normalized"]), (&json!(true), &json!("Ann@example.com")));
    let cases = std::fs::read_to_string(format!("{tools}/rank-results/ranking.case.json")).unwrap();
    let cases: Value = serde_json::from_str(&cases).unwrap();
    let ranking = cases[0]["args"].clone();
    let answer = call(&load("rank-results"), ranking).await.unwrap();
    assert!(matches!(answer.outcome, Outcome::Success(_)), "{answer:?}");
}
