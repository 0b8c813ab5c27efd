//! One call: a future that owns the instance and everything that it waits for.
//!
//! Requests are polled here, by the caller's task. So dropping the future drops all of it at once, and the deadline holds
//! whatever the module does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{BoxFuture, CancelReason, Context, HostError, Limits};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{sleep, sleep_until, timeout_at};

use crate::answer::Ending;
use crate::call_state::CallState;
use crate::code::Code;
use crate::config::HostConfig;
use crate::control::{Control, StopOnDrop};
use crate::engine::WasmEngine;
use crate::host::CallSlot;
use crate::input::call_json;
use crate::instance::{CallInstance, Input, StepOutcome};
use crate::request::{Request, result_json};
use crate::step::{self, Threads};

/// Longer than any call. A deadline further off could overflow an `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a handler's calls have in common.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) engine: Arc<WasmEngine>,
    pub(crate) code: Arc<Code>,
    pub(crate) config: Arc<HostConfig>,
    pub(crate) threads: Threads,
}

/// Runs a call to its end, or to its deadline.
pub(crate) async fn run(
    program: Program,
    args: Value,
    context: Arc<dyn Context>,
    limits: Limits,
    slot: CallSlot,
) -> Result<HandlerAnswer, HostError> {
    let limit_ms = u64::try_from(limits.timeout.as_millis()).unwrap_or(u64::MAX);
    let control = StopOnDrop(Control::until(Instant::now() + limits.timeout.min(MAX_TIMEOUT)));
    let deadline = control.0.deadline.into();
    let text = call_json(&args, context.facts(), &program.config.capabilities);
    drop(args);
    let state = CallState::new(program.config.clone(), context.clone());
    let instance = CallInstance::new(program.engine.clone(), program.code.clone(), state, slot);
    let mut driver = Driver {
        context: context.clone(),
        threads: program.threads,
        control: control.0.clone(),
        requests: FuturesUnordered::new(),
        timers: FuturesUnordered::new(),
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
    let answer = ending.into_answer(limit_ms, &*context);
    // What the module began and did not wait for is still done, as long as there is time.
    let _ = timeout_at(deadline, async { while driver.requests.next().await.is_some() {} }).await;
    answer
}

/// A request that has completed, with its result as JSON.
struct Completion {
    id: u32,
    text: String,
}

/// Does what the module asks for and goes on with the results, one at a time.
struct Driver {
    context: Arc<dyn Context>,
    threads: Threads,
    control: Arc<Control>,
    /// Uses of capabilities.
    requests: FuturesUnordered<BoxFuture<Completion>>,
    /// What nothing depends on when the module has ended.
    timers: FuturesUnordered<BoxFuture<Completion>>,
    /// The instance, while it waits.
    instance: Option<CallInstance>,
}

impl Driver {
    async fn drive(&mut self, text: String) -> Ending {
        let mut input = Input::Start(text);
        loop {
            let Some(instance) = self.instance.take() else { return Ending::Stopped };
            let step = Box::pin(instance.step(input));
            let Some((mut instance, outcome)) = step::run(step, &self.threads, &self.control).await else {
                return Ending::Stopped;
            };
            for (id, request) in instance.take_begun() {
                self.begin(id, request);
            }
            self.instance = Some(instance);
            if let StepOutcome::Ended(ending) = outcome {
                return ending;
            }
            input = match self.next().await {
                Some(Completion { id, text }) => Input::Result { id, text },
                None => return Ending::Crashed("it waits, and has no request open".into()),
            };
        }
    }

    fn begin(&mut self, id: u32, request: Request) {
        match request {
            Request::Capability(call) => {
                let answer = self.context.request(call);
                self.requests
                    .push(Box::pin(async move { Completion { id, text: result_json(answer.await) } }));
            }
            Request::Sleep(time) => self.timers.push(Box::pin(async move {
                sleep(time).await;
                Completion { id, text: result_json(Ok(Value::Null)) }
            })),
            Request::Signal => {
                let signal = self.context.signal();
                self.timers.push(Box::pin(async move {
                    let reason = signal.cancelled().await;
                    let is_deadline = reason == CancelReason::Deadline;
                    let value = json!({ "message": reason.message(), "isDeadline": is_deadline });
                    Completion { id, text: result_json(Ok(value)) }
                }));
            }
            Request::Done(result) => {
                let completion = Completion { id, text: result_json(result) };
                self.timers.push(Box::pin(std::future::ready(completion)));
            }
        }
    }

    /// The next request that completes; `None` if none is open.
    async fn next(&mut self) -> Option<Completion> {
        tokio::select! {
            Some(completion) = self.requests.next() => Some(completion),
            Some(completion) = self.timers.next() => Some(completion),
            else => None,
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
