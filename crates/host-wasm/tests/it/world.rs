//! What the tests share: a host, a handler from the text of a module, a call.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, Context, Handler, HandlerFault,
    HandlerFiles, HandlerHost, HandlerToLoad, HostError, Limits, LogLevel,
};
use quarterdeck_contracts::{HandlerAnswer, Metadata, Outcome};
use quarterdeck_host_wasm::{HostConfig, WasmHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

pub(crate) const TEN_SECONDS: Limits = Limits { timeout: Duration::from_secs(10) };

pub(crate) fn within(ms: u64) -> Limits {
    Limits { timeout: Duration::from_millis(ms) }
}

pub(crate) fn host() -> WasmHost {
    WasmHost::new(config())
}

/// Few slots, so that many tests at once need few addresses.
pub(crate) fn config() -> HostConfig {
    HostConfig { max_calls: 32, ..HostConfig::default() }
}

/// Loads a module in its text form.
pub(crate) fn load_module(host: &WasmHost, text: &str) -> Result<Arc<dyn Handler>, HostError> {
    load_bytes(host, wat::parse_str(text).unwrap())
}

pub(crate) fn load_bytes(host: &WasmHost, bytes: Vec<u8>) -> Result<Arc<dyn Handler>, HostError> {
    let metadata: Metadata = serde_json::from_value(json!({
        "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100,
    }))
    .unwrap();
    let files = HandlerFiles::from([("tool/handler.wasm".to_owned(), bytes)]);
    host.load(HandlerToLoad { metadata: &metadata, entry: "tool/handler.wasm", files: &files })
}

/// Loads a module with the usual allocator and helpers, and this in addition.
///
/// `$wrap` makes the answer `{"ok":true,"data":…}` around a JSON text; texts that the host writes begin at 65536.
pub(crate) fn load(host: &WasmHost, fields: &str) -> Arc<dyn Handler> {
    load_module(host, &module(fields)).unwrap()
}

pub(crate) fn module(fields: &str) -> String {
    format!(
        r#"(module
          (import "quarterdeck" "call" (func $call (param i32 i32 i32 i32) (result i32)))
          (import "quarterdeck" "log" (func $log (param i32 i32 i32)))
          (import "quarterdeck" "now" (func $now (result i64)))
          (import "quarterdeck" "random" (func $random (param i32 i32)))
          (memory (export "memory") 2)
          (global $next (mut i32) (i32.const 65536))
          (data (i32.const 8) "{{\"ok\":true,\"data\":")
          (func $allocate (export "allocate") (param $bytes i32) (result i32)
            (local $address i32)
            (local.set $address (global.get $next))
            (global.set $next (i32.add (local.get $address) (local.get $bytes)))
            (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
              (then
                (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1)
                      (i32.div_u (local.get $bytes) (i32.const 65536)))))
                  (then (return (i32.const 0))))))
            (local.get $address))
          (func $answer (param $address i32) (param $length i32) (result i64)
            (i64.or
              (i64.shl (i64.extend_i32_u (local.get $address)) (i64.const 32))
              (i64.extend_i32_u (local.get $length))))
          (func $wrap (param $text i32) (param $length i32) (result i64)
            (local $start i32)
            (local.set $start (call $allocate (i32.add (local.get $length) (i32.const 19))))
            (memory.copy (local.get $start) (i32.const 8) (i32.const 18))
            (memory.copy (i32.add (local.get $start) (i32.const 18)) (local.get $text) (local.get $length))
            (i32.store8
              (i32.add (local.get $start) (i32.add (local.get $length) (i32.const 18)))
              (i32.const 125))
            (call $answer (local.get $start) (i32.add (local.get $length) (i32.const 19))))
          {fields})"#
    )
}

/// A handler with this `execute`, of which `$text` and `$length` are the input, and a `resume` that wraps the result.
pub(crate) fn execute(host: &WasmHost, body: &str) -> Arc<dyn Handler> {
    load(
        host,
        &format!(
            r#"(func $execute (export "execute") (param $text i32) (param $length i32) (result i64) {body})
            (func (export "resume") (param i32 i32 i32) (result i64)
              (call $wrap (local.get 1) (local.get 2)))"#
        ),
    )
}

/// A handler whose answer is this text, whatever it is.
pub(crate) fn answering(host: &WasmHost, answer: &[u8]) -> Arc<dyn Handler> {
    let text: String = answer.iter().map(|byte| format!("\\{byte:02x}")).collect();
    load(
        host,
        &format!(
            r#"(data (i32.const 4096) "{text}")
            (func (export "execute") (param i32 i32) (result i64)
              (call $answer (i32.const 4096) (i32.const {})))
            (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#,
            answer.len()
        ),
    )
}

/// A handler that makes one request and answers with its result.
pub(crate) fn requesting(host: &WasmHost, name: &str, args: &Value) -> Arc<dyn Handler> {
    let escape = |text: &str| text.bytes().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let args = args.to_string();
    let handler = format!(
        r#"(data (i32.const 1024) "{}") (data (i32.const 4096) "{}")
        (func (export "execute") (param i32 i32) (result i64)
          (if (i32.eqz (call $call (i32.const 1024) (i32.const {}) (i32.const 4096) (i32.const {})))
            (then (unreachable)))
          (i64.const 0))
        (func (export "resume") (param i32 i32 i32) (result i64)
          (call $wrap (local.get 1) (local.get 2)))"#,
        escape(name),
        escape(&args),
        name.len(),
        args.len()
    );
    load(host, &handler)
}

/// The module that does what its arguments say; see its text.
pub(crate) fn scripted(host: &WasmHost) -> Arc<dyn Handler> {
    load_module(host, include_str!("scripted.wat")).unwrap()
}

pub(crate) async fn call(handler: &Arc<dyn Handler>, args: Value) -> Result<HandlerAnswer, HostError> {
    handler.run(args, FakeContext::new(), TEN_SECONDS).await
}

/// The data of one call's success.
pub(crate) async fn data(handler: &Arc<dyn Handler>, args: Value) -> Value {
    data_in(handler, args, FakeContext::new()).await
}

pub(crate) async fn data_in(handler: &Arc<dyn Handler>, args: Value, context: Arc<dyn Context>) -> Value {
    match handler.run(args, context, TEN_SECONDS).await.unwrap().outcome {
        Outcome::Success(data) => data,
        Outcome::Failure(error) => panic!("{error:?}"),
    }
}

/// How a call ends that fails, in words.
pub(crate) async fn failure(handler: &Arc<dyn Handler>, args: Value) -> String {
    handler.run(args, FakeContext::new(), within(2_000)).await.unwrap_err().to_string()
}

/// A context in which no request is ever answered.
pub(crate) struct Unanswered {
    inner: Arc<FakeContext>,
    /// Requests that wait.
    pub(crate) open: Arc<AtomicUsize>,
}

impl Unanswered {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: FakeContext::new(), open: Arc::default() })
    }
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Context for Unanswered {
    fn facts(&self) -> &CallFacts {
        self.inner.facts()
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.inner.log(level, text);
    }

    fn report_fault(&self, fault: HandlerFault) {
        self.inner.report_fault(fault);
    }

    fn audit(&self, event: &str, data: Value) {
        self.inner.audit(event, data);
    }

    fn progress(&self, text: &str) {
        self.inner.progress(text);
    }

    fn emit(&self, chunk: Value) -> bool {
        self.inner.emit(chunk)
    }

    fn signal(&self) -> CancellationToken {
        self.inner.signal()
    }

    fn request(&self, _: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(self.open.clone());
        Box::pin(async move {
            let _open = open;
            pending().await
        })
    }
}
