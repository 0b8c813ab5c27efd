//! `context.signal`, `AbortController` and partial results.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{CancelReason, Context, Handler, HostError};
use quarterdeck_contracts::{ErrorType, HandlerAnswer, Outcome};
use quarterdeck_host_js::{FetchConfig, HostConfig, JsHost};
use quarterdeck_outbound::Addresses;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::world::{TEN_SECONDS, config, eval, host, load, load_files};

/// Runs a call, and cancels it once its handler has said that it is ready.
async fn cancelled_when_ready(handler: &Arc<dyn Handler>) -> Result<HandlerAnswer, HostError> {
    cancelled_after(handler, std::future::ready(())).await
}

/// The same once something else has happened, too.
async fn cancelled_after(
    handler: &Arc<dyn Handler>,
    other: impl Future<Output = ()>,
) -> Result<HandlerAnswer, HostError> {
    let context = FakeContext::new();
    let running = tokio::spawn(handler.run(json!({}), context.clone(), TEN_SECONDS));
    while context.recorded().progress.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    other.await;
    assert!(context.signal().cancel(CancelReason::Stopped));
    running.await.unwrap()
}

fn outcome(answer: Result<HandlerAnswer, HostError>) -> Outcome {
    answer.unwrap().outcome
}

#[tokio::test]
async fn a_handler_that_waits_is_told_and_may_still_answer() {
    let host = host();
    let source = "export async function execute({ context }) {
        const heard = [];
        context.signal.addEventListener('abort', (event) => heard.push(event.type, event.target === context.signal));
        context.signal.onabort = () => heard.push('onabort');
        const { aborted } = context.signal;
        context.progress('ready');
        await new Promise((resolve) => { setTimeout(resolve, 60_000); context.signal.addEventListener('abort', resolve, { once: true }); });
        const { name, message } = context.signal.reason;
        return { ok: true, data: { before: aborted, after: context.signal.aborted, heard, name, message } };
      }";
    let Outcome::Success(data) = outcome(cancelled_when_ready(&load(&host, source)).await) else { panic!() };
    assert_eq!(
        data,
        json!({
            "before": false, "after": true, "heard": ["abort", true, "onabort"], "name": "AbortError",
            "message": "The call was cancelled.",
        })
    );
}

#[tokio::test]
async fn a_handler_that_computes_sees_that_it_should_stop() {
    let host = host();
    let source = "export function execute({ context }) {
        context.progress('ready');
        let rounds = 0;
        while (!context.signal.aborted) rounds += 1;
        context.signal.throwIfAborted();
      }";
    let Outcome::Failure(error) = outcome(cancelled_when_ready(&load(&host, source)).await) else { panic!() };
    assert_eq!((error.kind, &*error.message), (ErrorType::Cancelled, "The call was cancelled."));
}

/// A server that takes one request and never answers. The receivers learn when it has come, and when the client hangs up.
async fn silent_server() -> (u16, oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (came, arrived) = oneshot::channel();
    let (closed, hung_up) = oneshot::channel();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = socket.read(&mut buffer).await;
        let _ = came.send(());
        while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        let _ = closed.send(());
    });
    (port, arrived, hung_up)
}

fn local_host() -> JsHost {
    let addresses = Addresses::Where(Arc::new(|address: IpAddr| address.is_loopback()));
    JsHost::new(HostConfig { fetch: FetchConfig { addresses, ..FetchConfig::default() }, ..config() })
        .unwrap()
}

#[tokio::test]
async fn a_fetch_with_the_signal_ends_at_once_and_hangs_up() {
    let (port, arrived, hung_up) = silent_server().await;
    let host = local_host();
    let source = format!(
        "export async function execute({{ context }}) {{
            const fetched = fetch('http://127.0.0.1:{port}/', {{ signal: context.signal }});
            context.progress('ready');
            try {{ await fetched; }} catch (error) {{ return {{ ok: true, data: [error.name, error === context.signal.reason] }}; }}
        }}"
    );
    let handler = load_files(&host, &[("tool/handler.js", &source)], &["127.0.0.1"]).unwrap();
    let began = Instant::now();
    let Outcome::Success(data) = outcome(cancelled_after(&handler, async { arrived.await.unwrap() }).await)
    else {
        panic!()
    };
    assert_eq!(data, json!(["AbortError", true]));
    hung_up.await.unwrap();
    assert!(began.elapsed() < TEN_SECONDS.timeout, "it did not wait for the deadline");
}

#[tokio::test]
async fn a_call_that_is_dropped_hangs_up_its_fetch_and_stops_its_loop() {
    let (port, arrived, hung_up) = silent_server().await;
    let host = local_host();
    let source = format!("export const execute = async () => fetch('http://127.0.0.1:{port}/');");
    let fetching = load_files(&host, &[("tool/handler.js", &source)], &["127.0.0.1"]).unwrap();
    let running = tokio::spawn(fetching.run(json!({}), FakeContext::new(), TEN_SECONDS));
    let looping =
        load(&host, "export function execute({ context }) { context.progress('ready'); for (;;) {} }");
    let context = FakeContext::new();
    let spinning = tokio::spawn(looping.run(json!({}), context.clone(), TEN_SECONDS));
    while context.recorded().progress.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    arrived.await.unwrap();
    running.abort();
    spinning.abort();
    hung_up.await.unwrap();
    let began = Instant::now();
    while host.stats().calls > 0 {
        assert!(began.elapsed() < TEN_SECONDS.timeout, "{:?}", host.stats());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn handlers_make_signals_of_their_own() {
    let data = eval(
        "const controller = new AbortController();
         const any = AbortSignal.any([controller.signal, context.signal]);
         const once = []; const listener = () => once.push(1);
         any.addEventListener('abort', listener); any.addEventListener('abort', listener);
         const removed = () => once.push('removed');
         any.addEventListener('abort', removed); any.removeEventListener('abort', removed);
         any.addEventListener('abort', () => { throw new Error('a listener fails alone'); });
         any.addEventListener('abort', { handleEvent: () => once.push('object') });
         controller.abort('enough'); controller.abort('again');
         const timeout = AbortSignal.timeout(5);
         await new Promise((resolve) => timeout.addEventListener('abort', resolve));
         let thrown; try { AbortSignal.abort().throwIfAborted(); } catch (error) { thrown = [error.name, error instanceof DOMException, error instanceof Error]; }
         let illegal; try { new AbortSignal(); } catch (error) { illegal = error.name; }
         return { reason: any.reason, once, timeout: timeout.reason.name, thrown, illegal, call: context.signal.aborted };",
    )
    .await;
    let expected = json!({
        "reason": "enough", "once": [1, "object"], "timeout": "TimeoutError", "thrown": ["AbortError", true, true],
        "illegal": "TypeError", "call": false,
    });
    assert_eq!(data, expected);
}

#[tokio::test]
async fn a_fetch_is_aborted_by_a_signal_of_the_handlers_own() {
    let (port, _arrived, _hung_up) = silent_server().await;
    let host = local_host();
    let source = format!(
        "export async function execute() {{
            const names = [];
            for (const signal of [AbortSignal.timeout(20), AbortSignal.abort('before')]) {{
                try {{ await fetch('http://127.0.0.1:{port}/', {{ signal }}); }} catch (error) {{ names.push(error.name ?? error); }}
            }}
            return {{ ok: true, data: names }};
        }}"
    );
    let handler = load_files(&host, &[("tool/handler.js", &source)], &["127.0.0.1"]).unwrap();
    let answer = handler.run(json!({}), FakeContext::new(), TEN_SECONDS).await;
    assert!(matches!(outcome(answer), Outcome::Success(data) if data == json!(["TimeoutError", "before"])));
}

#[tokio::test]
async fn partial_results_go_out_while_the_handler_runs() {
    let host = host();
    let context = FakeContext::new();
    let source = "export async function execute({ context }) {
        const sent = [context.emit({ found: 1 }), context.emit('more'), context.emit()];
        return { ok: true, data: sent };
      }";
    let answer = load(&host, source).run(json!({}), context.clone(), TEN_SECONDS).await;
    assert!(matches!(outcome(answer), Outcome::Success(data) if data == json!([true, true, true])));
    assert_eq!(context.recorded().partial, [json!({ "found": 1 }), json!("more"), Value::Null]);
}

#[tokio::test]
async fn partial_results_of_one_call_are_bounded_in_bytes() {
    let host = host();
    let context = FakeContext::new();
    let source = "export function execute({ context }) {
        let sent = 0;
        while (context.emit('x'.repeat(10_000)) && sent < 10_000) sent += 1;
        return { ok: true, data: sent };
      }";
    let answer = load(&host, source).run(json!({}), context.clone(), TEN_SECONDS).await;
    let Outcome::Success(sent) = outcome(answer) else { panic!() };
    assert!(sent.as_u64().is_some_and(|sent| sent > 0 && sent < 1_000), "{sent}");
    assert!(context.recorded().logs.iter().any(|(_, line)| line.contains("partial output")));
}
