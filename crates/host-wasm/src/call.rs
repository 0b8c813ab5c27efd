//! One call: a future that owns the instance and everything that it waits for.
//!
//! Requests are polled here, by the caller's task. So dropping the future drops all of it at once, and the deadline holds
//! whatever the module does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, CancelReason, CapabilityError, Context, HostError, Limits, LogLevel,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{sleep, sleep_until, timeout_at};

use crate::call_slot::CallSlot;
use crate::call_state::{CallState, InputForm, Language};
use crate::code::Code;
use crate::config::HostConfig;
use crate::control::{Control, StopOnDrop};
use crate::ending::Ending;
use crate::engine::WasmEngine;
use crate::fetch::{FetchFailure, FetchRequest, FetchResponse, ToolFetcher};
use crate::input::{args_json, call_json};
use crate::instance::{CallInstance, Input, StepOutcome};
use crate::request::{Request, result_json};
use crate::retired::Retired;
use crate::step::{self, Threads};

/// Longer than any call. A deadline further off could overflow an `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// A handler may fetch thousands of times.
const MAX_FETCH_WARNINGS: usize = 10;

/// What a handler's calls have in common.
#[derive(Clone)]
pub struct Calls {
    /// The engine that they run on.
    pub engine: Arc<WasmEngine>,
    /// How the handler's language differs from a plain module.
    pub language: Language,
    /// The limits of the host.
    pub config: Arc<HostConfig>,
    /// Threads that they may compute on.
    pub threads: Threads,
    /// What fetches for the tool.
    pub fetcher: Arc<ToolFetcher>,
    /// What the last of them has left to be cleared.
    pub retired: Retired,
}

impl Calls {
    /// Runs a call to its end, or to its deadline. `read` makes the answer of an ending, with the limit in milliseconds.
    pub fn run(
        &self,
        slot: CallSlot,
        code: Arc<Code>,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
        read: impl FnOnce(Ending, u64) -> Result<HandlerAnswer, HostError> + Send + 'static,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        if self.threads.are_closed() {
            let gone = HostError::Crashed("the host was shut down".into());
            return Box::pin(std::future::ready(Err(gone)));
        }
        self.retired.clear_for(&code);
        Box::pin(run(self.clone(), code, args, context, limits, slot, read))
    }
}

async fn run(
    calls: Calls,
    code: Arc<Code>,
    args: Value,
    context: Arc<dyn Context>,
    limits: Limits,
    slot: CallSlot,
    read: impl FnOnce(Ending, u64) -> Result<HandlerAnswer, HostError>,
) -> Result<HandlerAnswer, HostError> {
    let limit_ms = u64::try_from(limits.timeout.as_millis()).unwrap_or(u64::MAX);
    let control = StopOnDrop(Control::until(Instant::now() + limits.timeout.min(MAX_TIMEOUT)));
    let deadline = control.0.deadline.into();
    let text = match calls.language.input {
        InputForm::Call => call_json(&args, context.facts(), &calls.config.capabilities),
        InputForm::Arguments => args_json(&args),
    };
    drop(args);
    let state = CallState::new(calls.language, calls.config.clone(), context.clone());
    let instance = CallInstance::new(calls.engine.clone(), code, state, slot);
    let mut driver = Driver {
        context,
        fetcher: calls.fetcher,
        threads: calls.threads,
        control: control.0.clone(),
        requests: FuturesUnordered::new(),
        others: FuturesUnordered::new(),
        signals: FuturesUnordered::new(),
        waits_for_signal: calls.language.waits_for_signal,
        fetches: HashMap::new(),
        fetch_warnings: 0,
        instance: Some(instance),
    };
    let ending = tokio::select! {
        biased;
        ending = driver.drive(text) => ending,
        () = sleep_until(deadline) => match driver.instance {
            Some(_) => return Err(HostError::TimedOut { limit_ms, computing: false }),
            None => Ending::Stopped,
        },
    };
    let answer = read(ending, limit_ms);
    // What the module began and did not wait for is still done, as long as there is time.
    let _ = timeout_at(deadline, async { while driver.requests.next().await.is_some() {} }).await;
    if let Some(instance) = driver.instance.take_if(|instance| !instance.is_large()) {
        calls.retired.put(instance);
    }
    answer
}

/// A request that has completed.
struct Completion {
    id: u32,
    result: CompletionResult,
}

enum CompletionResult {
    Value(Result<Value, CapabilityError>),
    Fetched(Result<FetchResponse, FetchFailure>),
}

/// Does what the module asks for and goes on with the results, one at a time.
struct Driver {
    context: Arc<dyn Context>,
    fetcher: Arc<ToolFetcher>,
    threads: Threads,
    control: Arc<Control>,
    /// Uses of capabilities.
    requests: FuturesUnordered<BoxFuture<Completion>>,
    /// What nothing depends on when the module has ended: timers and fetches.
    others: FuturesUnordered<BoxFuture<Completion>>,
    /// What tells of the call's own end.
    signals: FuturesUnordered<BoxFuture<Completion>>,
    waits_for_signal: bool,
    /// What ends fetches that the handler gives up.
    fetches: HashMap<u32, AbortHandle>,
    fetch_warnings: usize,
    /// The instance, while it waits.
    instance: Option<CallInstance>,
}

impl Driver {
    async fn drive(&mut self, text: String) -> Ending {
        let mut input = Input::Start(text);
        loop {
            let Some(instance) = self.instance.take() else { return Ending::Stopped };
            let step = Box::pin(instance.step(input));
            let (mut instance, outcome) = match step::run(step, &self.threads, &self.control).await {
                Ok(done) => done,
                Err(ending) => return ending,
            };
            for (id, request) in instance.take_begun() {
                self.begin(id, request);
            }
            for id in instance.take_cancelled() {
                self.fetches.remove(&id).iter().for_each(AbortHandle::abort);
            }
            self.instance = Some(instance);
            if let StepOutcome::Ended(ending) = outcome {
                return ending;
            }
            input = match self.next_input().await {
                Some(input) => input,
                None => return Ending::Idle,
            };
        }
    }

    fn begin(&mut self, id: u32, request: Request) {
        let value = move |value| Completion { id, result: CompletionResult::Value(value) };
        match request {
            Request::Capability(call) => {
                let answer = self.context.request(call);
                self.requests.push(Box::pin(async move { value(answer.await) }));
            }
            Request::Fetch(request) => self.fetch(id, request),
            Request::Sleep(time) => self.others.push(Box::pin(async move {
                sleep(time).await;
                value(Ok(Value::Null))
            })),
            Request::Signal => {
                let signal = self.context.signal();
                self.signals.push(Box::pin(async move {
                    let reason = signal.cancelled().await;
                    let is_deadline = reason == CancelReason::Deadline;
                    value(Ok(json!({ "message": reason.message(), "isDeadline": is_deadline })))
                }));
            }
            Request::Done(result) => self.others.push(Box::pin(std::future::ready(value(result)))),
        }
    }

    fn fetch(&mut self, id: u32, request: FetchRequest) {
        let (handle, registration) = AbortHandle::new_pair();
        let (fetcher, context) = (self.fetcher.clone(), self.context.clone());
        let fetch = Abortable::new(async move { fetcher.fetch(request, &*context).await }, registration);
        self.fetches.insert(id, handle);
        self.others.push(Box::pin(async move {
            let result = match fetch.await {
                Ok(fetched) => CompletionResult::Fetched(fetched),
                // One that was given up is not waited for, which is known by its id.
                Err(_) => CompletionResult::Value(Ok(Value::Null)),
            };
            Completion { id, result }
        }));
    }

    /// The next result that the module waits for; `None` if it can wait for none.
    async fn next_input(&mut self) -> Option<Input> {
        loop {
            if !self.is_waiting() {
                return None;
            }
            let Completion { id, result } = self.next().await?;
            self.fetches.remove(&id);
            let instance = self.instance.as_mut()?;
            if !instance.is_open(id) {
                continue;
            }
            let text = match result {
                CompletionResult::Value(value) => result_json(value),
                CompletionResult::Fetched(Ok(response)) => instance.present(id, response),
                CompletionResult::Fetched(Err(failure)) => {
                    self.warn(failure.log_line.as_deref());
                    result_json(Err(failure.error))
                }
            };
            return Some(Input::Result { id, text });
        }
    }

    /// Whether anything is in progress that could still wake the handler.
    fn is_waiting(&self) -> bool {
        let has_signal = self.waits_for_signal && !self.signals.is_empty();
        has_signal || !self.requests.is_empty() || !self.others.is_empty()
    }

    /// The next request that completes; `None` if there is none.
    async fn next(&mut self) -> Option<Completion> {
        tokio::select! {
            biased;
            Some(completion) = self.signals.next() => Some(completion),
            Some(completion) = self.requests.next() => Some(completion),
            Some(completion) = self.others.next() => Some(completion),
            else => None,
        }
    }

    fn warn(&mut self, line: Option<&str>) {
        if let Some(line) = line
            && self.fetch_warnings < MAX_FETCH_WARNINGS
        {
            self.fetch_warnings += 1;
            self.context.log(LogLevel::Warn, line);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Giving much memory back takes longer than the caller's task should be held up.
        if let Some(instance) = self.instance.take()
            && instance.is_large()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn_blocking(move || drop(instance)));
        }
    }
}
