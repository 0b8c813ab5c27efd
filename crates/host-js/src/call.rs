//! One call: a future that owns everything the call waits for.
//!
//! Capabilities, timers and fetches are polled here, by the caller's task; only JavaScript runs on the pool. So
//! dropping the future drops all of it at once, and the deadline holds whatever the engine does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, Context, HostError, Limits, LogLevel,
};
use quarterdeck_contracts::{CapabilitySpec, HandlerAnswer};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, sleep_until, timeout_at};

use crate::answer::{CapabilityErrorJson, Ending};
use crate::bridge::{Event, Link};
use crate::engine::{Completion, CompletionResult, Engine, Input, Step};
use crate::engine_pool::{EnginePool, HostState};
use crate::fault::FaultReporter;
use crate::fetch::{FetchRequest, ToolFetcher};
use crate::handler_status::CallPermit;
use crate::limits::{Control, TimeLimit};
use crate::thread_pool::{CallIds, Job, QueueFull};

/// The error of a call when the queue is full.
pub(crate) const BUSY: HostError = HostError::Busy { retry_after_ms: 250 };

/// Longer than any call. A deadline further off could overflow an `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A handler may fetch thousands of times.
const MAX_FETCH_WARNINGS: usize = 10;

/// One call in progress.
pub(crate) struct Call {
    pub(crate) pool: Arc<EnginePool>,
    pub(crate) shared: Arc<HostState>,
    pub(crate) fetcher: Arc<ToolFetcher>,
    pub(crate) context: Arc<dyn Context>,
    pub(crate) limits: Limits,
    /// When the call was made. Waiting for a thread counts.
    pub(crate) since: Instant,
    /// Held until the call has ended.
    pub(crate) permit: CallPermit,
    /// Lines that its fetches have brought into the log.
    pub(crate) warnings: Arc<AtomicUsize>,
}

impl Call {
    /// Runs the call to its end, or to its deadline.
    pub(crate) async fn run(self, args: Value) -> Result<HandlerAnswer, HostError> {
        let limit_ms = u64::try_from(self.limits.timeout.as_millis()).unwrap_or(u64::MAX);
        let deadline = self.since + self.limits.timeout.min(MAX_TIMEOUT);
        let control = StopOnDrop(Arc::new(Control::until(deadline)));
        let (events, incoming) = unbounded_channel();
        let link = Link { context: self.context.clone(), events };
        let job = self.job(&control.0);
        let text = call_json(&args, self.context.facts(), &self.shared.config.capabilities);
        self.start(text, link, control.0.clone(), job.clone()).map_err(|QueueFull| BUSY)?;

        let deadline = deadline.into();
        let mut driver = Driver {
            call: &self,
            job,
            incoming,
            requests: FuturesUnordered::new(),
            timers_and_fetches: FuturesUnordered::new(),
            fetches: HashMap::new(),
            signal: self.pool.program.uses_abort.then(|| self.context.signal()),
            completed: Vec::new(),
            engine: None,
        };
        let ending = tokio::select! {
            biased;
            ending = driver.drive() => ending,
            () = sleep_until(deadline) => match driver.engine {
                Some(_) => return Err(HostError::TimedOut { limit_ms, computing: false }),
                None => Ending::Stopped,
            },
        };
        if matches!(ending, Ending::Stopped) && !control.0.has_begun() {
            // Its time went by in the queue, so nothing was run.
            return Err(BUSY);
        }
        let has_ended = !matches!(ending, Ending::Stopped | Ending::Refused(_));
        let faults = FaultReporter {
            program: &self.pool.program,
            capabilities: &self.shared.config.capabilities,
            context: &*self.context,
        };
        let answer = ending.into_answer(limit_ms, self.shared.config.max_answer_bytes, &faults);
        // What the handler began and did not wait for is still done, as long as there is time.
        let _ = timeout_at(deadline, async { while driver.requests.next().await.is_some() {} }).await;
        drop(driver);
        if has_ended {
            self.permit.complete();
        }
        answer
    }

    fn fetch(&self, id: u32, request: FetchRequest) -> BoxFuture<Completion> {
        let (fetcher, warnings) = (self.fetcher.clone(), self.warnings.clone());
        let context = self.context.clone();
        Box::pin(async move {
            let result = match fetcher.fetch(request, &*context).await {
                Ok(response) => CompletionResult::Response(response.head(), response.body),
                Err(failure) => {
                    if let Some(line) = failure.log_line
                        && warnings.fetch_add(1, Ordering::Relaxed) < MAX_FETCH_WARNINGS
                    {
                        context.log(LogLevel::Warn, &line);
                    }
                    CompletionResult::Failed(text(&CapabilityErrorJson::from(failure.error)))
                }
            };
            Completion { id, result }
        })
    }

    fn job(&self, control: &Arc<Control>) -> Job {
        Job {
            status: self.pool.status.clone(),
            limit: TimeLimit::Call(control.clone()),
            call: Some(CallIds::of(self.context.facts())),
        }
    }

    fn start(&self, text: String, link: Link, control: Arc<Control>, job: Job) -> Result<(), QueueFull> {
        let (shared, pool) = (self.shared.clone(), self.pool.clone());
        let (events, status) = (link.events.clone(), pool.status.clone());
        let refuse = Box::new(move || drop(events.send(Event::Ended(Ending::Refused(status.refusal())))));
        let run = Box::new(move || {
            if control.is_over() {
                let _ = link.events.send(Event::Ended(Ending::Stopped));
                return;
            }
            control.begin();
            let made = pool.take().map_or_else(|| shared.make(&pool.program, control.clone()), Ok);
            match made {
                Ok(engine) => {
                    engine.attach(link.clone(), control.clone());
                    step(engine, Input::Start(text), &link, &control);
                    pool.refill();
                }
                Err(error) => {
                    let _ =
                        link.events.send(Event::Ended(Ending::Crashed(error.to_string().as_str().into())));
                }
            }
        });
        self.shared.queue.start(job, run, refuse)
    }
}

/// Runs an engine on the current thread until it ends or waits, and tells the driver.
fn step(engine: Engine, input: Input, link: &Link, control: &Control) {
    match engine.step(input) {
        Step::Waiting => drop(link.events.send(Event::Suspended(engine))),
        // The caller is answered first; tearing the engine down comes after.
        Step::Ended(ending) => {
            control.end();
            let _ = link.events.send(Event::Ended(ending));
        }
    }
}

/// Does what the engine asks for and wakes it with the results.
struct Driver<'a> {
    call: &'a Call,
    job: Job,
    incoming: UnboundedReceiver<Event>,
    requests: FuturesUnordered<BoxFuture<Completion>>,
    timers_and_fetches: FuturesUnordered<BoxFuture<Completion>>,
    /// What ends fetches that the handler gives up.
    fetches: HashMap<u32, AbortHandle>,
    /// Tells when the call should stop, until the engine knows. Absent where no handler would look.
    signal: Option<CancellationToken>,
    completed: Vec<Completion>,
    /// The engine, while it waits.
    engine: Option<Engine>,
}

impl Driver<'_> {
    async fn drive(&mut self) -> Ending {
        loop {
            if !self.completed.is_empty()
                && let Some(engine) = self.engine.take()
                && self.resume(engine).is_err()
            {
                return Ending::Crashed("the host was shut down".into());
            }
            tokio::select! {
                biased;
                event = self.incoming.recv() => match event {
                    Some(Event::Ended(ending)) => return ending,
                    Some(Event::Suspended(engine)) => self.engine = Some(engine),
                    Some(Event::Request { id, call }) => {
                        let answer = self.call.context.request(call);
                        self.requests.push(Box::pin(async move { Completion { id, result: result_of(answer.await) } }));
                    }
                    Some(Event::Fetch { id, request }) => {
                        let (handle, registration) = AbortHandle::new_pair();
                        let fetch = Abortable::new(self.call.fetch(id, request), registration);
                        self.fetches.insert(id, handle);
                        self.timers_and_fetches.push(Box::pin(async move {
                            // One that was given up has no listener, which is known by its number.
                            fetch.await.unwrap_or(Completion { id, result: CompletionResult::Fired })
                        }));
                    }
                    Some(Event::Timer { id, ms }) => self.timers_and_fetches.push(Box::pin(async move {
                        sleep(Duration::from_secs_f64(ms / 1_000.0)).await;
                        Completion { id, result: CompletionResult::Fired }
                    })),
                    Some(Event::Cancel { id }) => {
                        if let Some(fetch) = self.fetches.remove(&id) {
                            fetch.abort();
                        }
                    }
                    None => return Ending::Crashed("its engine was lost".into()),
                },
                () = cancelled(&self.signal), if self.signal.is_some() => {
                    self.signal = None;
                    self.completed.push(Completion { id: 0, result: CompletionResult::Aborted });
                }
                Some(completion) = self.requests.next(), if !self.requests.is_empty() => self.completed.push(completion),
                Some(completion) = self.timers_and_fetches.next(), if !self.timers_and_fetches.is_empty() => {
                    self.fetches.remove(&completion.id);
                    self.completed.push(completion);
                }
            }
        }
    }

    fn resume(&mut self, engine: Engine) -> Result<(), QueueFull> {
        let completed = std::mem::take(&mut self.completed);
        let resume = move || {
            if let Some(link) = engine.link() {
                let control = engine.control();
                // No caller waits for it any more, and what it would do first may be what cannot be interrupted.
                if control.is_over() {
                    let _ = link.events.send(Event::Ended(Ending::Stopped));
                    return;
                }
                step(engine, Input::Results(completed), &link, &control);
            }
        };
        self.call.shared.queue.resume(self.job.clone(), Box::new(resume))
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // Tearing an engine down takes longer than the caller should wait.
        if let Some(engine) = self.engine.take() {
            let teardown = self.call.pool.teardown();
            self.call.shared.queue.run_in_background(teardown, Box::new(move || drop(engine)));
        }
    }
}

/// Stops the engine when its caller no longer waits for the answer.
struct StopOnDrop(Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

async fn cancelled(signal: &Option<CancellationToken>) {
    match signal {
        Some(signal) => drop(signal.cancelled().await),
        None => std::future::pending().await,
    }
}

fn result_of(answer: Result<Value, quarterdeck_contracts::handler::CapabilityError>) -> CompletionResult {
    match answer {
        Ok(value) => CompletionResult::Value(text(&value)),
        Err(error) => CompletionResult::Failed(text(&CapabilityErrorJson::from(error))),
    }
}

/// What `start` of the prelude reads.
fn call_json(args: &Value, facts: &CallFacts, capabilities: &[CapabilitySpec]) -> String {
    #[derive(Serialize)]
    struct Text<'a> {
        args: &'a Value,
        facts: Facts<'a>,
    }
    #[derive(Serialize)]
    struct Facts<'a> {
        #[serde(flatten)]
        facts: &'a CallFacts,
        declared: BTreeMap<&'static str, bool>,
    }
    let declarable = capabilities.iter().filter(|spec| !spec.is_always_granted);
    let declared =
        declarable.map(|spec| (spec.name, facts.capabilities.contains(&spec.capability()))).collect();
    text(&Text { args, facts: Facts { facts, declared } })
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the value has string keys and no failing parts")
}
