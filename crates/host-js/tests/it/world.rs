//! What the tests share: a host, a handler from one string, a call.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, CapabilityErrorCode, Context,
    Handler, HandlerFault, HandlerFiles, HandlerHost, HandlerToLoad, HostError, Limits, LogLevel,
};
use quarterdeck_contracts::{HandlerAnswer, Metadata, Outcome};
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

/// A host with everything as it comes.
pub(crate) fn host() -> JsHost {
    JsHost::new(config()).unwrap()
}

pub(crate) fn config() -> HostConfig {
    HostConfig::default()
}

/// A handler of one file.
pub(crate) fn load(host: &JsHost, source: &str) -> Arc<dyn Handler> {
    load_files(host, &[("tool/handler.js", source)], &[]).unwrap()
}

/// A handler of one file, of a tool of this name.
pub(crate) fn load_tool(host: &JsHost, name: &str, source: &str) -> Result<Arc<dyn Handler>, HostError> {
    load_as(host, name, &[("tool/handler.js", source)], &[])
}

pub(crate) fn load_files(
    host: &JsHost,
    files: &[(&str, &str)],
    network: &[&str],
) -> Result<Arc<dyn Handler>, HostError> {
    load_as(host, "tool", files, network)
}

fn load_as(
    host: &JsHost,
    name: &str,
    files: &[(&str, &str)],
    network: &[&str],
) -> Result<Arc<dyn Handler>, HostError> {
    load_defined(host, files, json!({ "toolId": name, "network": network }))
}

/// A handler of a tool whose definition has these fields in addition to, or in place of, the usual ones.
pub(crate) fn load_defined(
    host: &JsHost,
    files: &[(&str, &str)],
    fields: Value,
) -> Result<Arc<dyn Handler>, HostError> {
    let files: HandlerFiles =
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    let mut metadata = json!({
        "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100,
    });
    for (name, value) in fields.as_object().unwrap() {
        metadata[name] = value.clone();
    }
    let metadata: Metadata = serde_json::from_value(metadata).unwrap();
    host.load(HandlerToLoad { metadata: &metadata, entry: "tool/handler.js", files: &files })
}

pub(crate) const TEN_SECONDS: Limits = Limits { timeout: Duration::from_secs(10) };

pub(crate) fn within(ms: u64) -> Limits {
    Limits { timeout: Duration::from_millis(ms) }
}

/// Runs one call in the usual world.
pub(crate) async fn call(handler: &Arc<dyn Handler>, args: Value) -> Result<HandlerAnswer, HostError> {
    handler.run(args, FakeContext::new(), TEN_SECONDS).await
}

/// The data of one call's success.
pub(crate) async fn data(handler: &Arc<dyn Handler>, args: Value) -> Value {
    match call(handler, args).await.unwrap().outcome {
        Outcome::Success(data) => data,
        Outcome::Failure(error) => panic!("{error:?}"),
    }
}

/// The data that a handler with this body returns: `return …`.
pub(crate) async fn eval(body: &str) -> Value {
    let host = host();
    let source = format!(
        "export async function execute({{ args, context }}) {{ const data = await (async () => {{ {body} }})(); return {{ ok: true, data }}; }}"
    );
    data(&load(&host, &source), json!({})).await
}

/// How a handler with this body ends, with its error as text.
pub(crate) async fn fails(body: &str) -> String {
    let host = host();
    let source = format!("export async function execute({{ args, context }}) {{ {body} }}");
    let ended = load(&host, &source).run(json!({}), FakeContext::new(), within(500)).await;
    match ended {
        Err(error) => error.to_string(),
        Ok(answer) => match answer.outcome {
            Outcome::Success(data) => format!("success: {data}"),
            Outcome::Failure(error) => format!("failure: {}", serde_json::to_string(&error).unwrap()),
        },
    }
}

/// A context whose every request takes a while, fails, or never comes back.
pub(crate) struct Slow {
    inner: Arc<FakeContext>,
    mode: AnswerMode,
    pub(crate) open: Arc<AtomicUsize>,
}

pub(crate) enum AnswerMode {
    After(Duration),
    Never,
    Failing(CapabilityErrorCode, Option<f64>),
    /// By running another handler with the same context.
    Calling(Arc<dyn Handler>, usize),
}

impl Slow {
    pub(crate) fn new(mode: AnswerMode) -> Arc<Self> {
        Arc::new(Self { inner: FakeContext::new(), mode, open: Arc::default() })
    }

    pub(crate) fn faults(&self) -> Vec<HandlerFault> {
        self.inner.recorded().faults
    }
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Context for Slow {
    fn facts(&self) -> &CallFacts {
        self.inner.facts()
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        assert_ne!(text, "panic", "on purpose");
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

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(self.open.clone());
        match &self.mode {
            AnswerMode::After(time) => {
                let time = *time;
                Box::pin(async move {
                    let _open = open;
                    tokio::time::sleep(time).await;
                    Ok(json!(call.args))
                })
            }
            AnswerMode::Never => Box::pin(async move {
                let _open = open;
                pending().await
            }),
            AnswerMode::Failing(code, retry_after_seconds) => {
                let error = CapabilityError {
                    retry_after_seconds: *retry_after_seconds,
                    ..CapabilityError::new(*code, "it did not work")
                };
                Box::pin(std::future::ready(Err(error)))
            }
            AnswerMode::Calling(handler, depth) => {
                let inner = Self {
                    inner: self.inner.clone(),
                    mode: if *depth > 1 {
                        AnswerMode::Calling(handler.clone(), depth - 1)
                    } else {
                        AnswerMode::After(Duration::from_millis(1))
                    },
                    open: self.open.clone(),
                };
                let running = handler.run(json!({}), Arc::new(inner), TEN_SECONDS);
                Box::pin(async move {
                    let _open = open;
                    let answer = running.await.map_err(|error| {
                        CapabilityError::new(CapabilityErrorCode::NotAvailable, error.to_string())
                    })?;
                    Ok(serde_json::to_value(&answer).unwrap())
                })
            }
        }
    }
}
