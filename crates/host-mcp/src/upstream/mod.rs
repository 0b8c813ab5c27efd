//! One MCP server elsewhere: a connection that all sessions share, kept by a supervisor, and the calls on it.

mod backoff;
mod call;
mod client;
mod connection;
mod counters;
mod events;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod http;
mod inbound;
mod lines;
mod lost;
mod message;
mod one_connection;
mod pins;
mod process;
mod progress;
mod state;
mod stderr_log;
mod supervisor;
mod tools;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::handler::Context;
use quarterdeck_contracts::{
    RefusedRequest, UpstreamEvent, UpstreamOutcome, UpstreamTransport as ShownTransport, UpstreamView,
};
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

pub(crate) use self::call::CallFailure;
use self::connection::Connection;
use self::counters::Counters;
use self::events::Events;
pub(crate) use self::events::Observers;
#[cfg(feature = "fuzzing")]
pub use self::fuzzing::fuzz_messages;
pub(crate) use self::one_connection::OneConnection;
pub(crate) use self::pins::Pin;
use self::pins::{Comparison, Pins};
use self::state::{Phase, Status};
use crate::server_config::{UpstreamConfig, UpstreamTransport};

/// Calls that may wait for one of the server's places, for each of its places.
const MAX_WAITING_PER_PLACE: usize = 8;

/// A server with its supervisor, which is stopped with it.
pub(crate) struct Upstream {
    core: Arc<UpstreamCore>,
    stop: watch::Sender<bool>,
    supervisor: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

/// What the supervisor and the calls of one server share.
pub(crate) struct UpstreamCore {
    config: UpstreamConfig,
    counters: Arc<Counters>,
    events: Events,
    pins: Pins,
    status: watch::Sender<Status>,
    /// Notified when something makes it doubtful that the server is well.
    look_again: Notify,
    places: Semaphore,
    waiting: AtomicUsize,
    is_started: AtomicBool,
}

/// Why a call was not sent.
#[derive(Debug)]
pub(crate) enum Unavailable {
    /// The server is down.
    Down { retry_after: Duration },
    /// It publishes something else under the tool's name.
    Drifted,
    /// It does not publish the tool any more.
    Missing,
    /// Too many calls wait for it already.
    Busy,
    /// It was not there before the call's deadline.
    TimedOut,
}

/// A result, with what is needed to read it.
pub(crate) struct CallAnswer {
    pub(crate) result: CallToolResult,
    pub(crate) has_output_schema: bool,
}

impl Upstream {
    pub(crate) fn new(config: UpstreamConfig, observers: Observers) -> Self {
        let core = UpstreamCore {
            events: Events::new(config.name.as_str(), observers),
            counters: Arc::default(),
            pins: Pins::default(),
            status: watch::Sender::new(Status::idle()),
            look_again: Notify::new(),
            places: Semaphore::new(config.limits.max_concurrent_calls.max(1)),
            waiting: AtomicUsize::new(0),
            is_started: AtomicBool::new(false),
            config,
        };
        let (stop, supervisor) = (watch::Sender::new(false), Mutex::new(None));
        Self { core: Arc::new(core), stop, supervisor }
    }

    /// Adds an imported tool. Its server is started with the first one, where there is a runtime to start it on.
    pub(crate) fn bind(&self, pin: Pin) -> Arc<Pin> {
        let pin = self.core.pins.add(pin);
        self.start_if_needed();
        // What was just imported is compared with what is published now.
        self.core.look_again.notify_one();
        pin
    }

    /// Starts the server if a tool of it is loaded and there is a runtime to start it on.
    pub(crate) fn start_if_needed(&self) {
        if !self.core.pins.is_empty() && tokio::runtime::Handle::try_current().is_ok() {
            self.start();
        }
    }

    /// Starts the supervisor, unless there is one.
    fn start(&self) {
        if *self.stop.borrow() || self.core.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        self.core.status.send_modify(|status| status.enter(Phase::Connecting));
        let (core, stop) = (self.core.clone(), self.stop.subscribe());
        let running = tokio::spawn(async move {
            // Its runtime may end before the host; the next call then starts it on another one.
            let _ended = OnDrop(Some(|| core.note_end()));
            supervisor::run(core.clone(), stop).await;
        });
        *self.supervisor.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }

    /// Calls a tool that is published as it was imported. Nothing is sent otherwise, and nothing is sent twice.
    pub(crate) async fn call(
        &self,
        pin: &Pin,
        arguments: JsonObject,
        context: &Arc<dyn Context>,
        deadline: Instant,
    ) -> Result<Result<CallAnswer, CallFailure>, Unavailable> {
        if *self.stop.borrow() {
            return Err(Unavailable::Down { retry_after: Duration::ZERO });
        }
        self.start();
        let begun = Instant::now();
        let report = |outcome: UpstreamOutcome| {
            self.core.counters.count_call(outcome);
            let duration = begun.elapsed();
            self.core.events.emit(UpstreamEvent::Called { outcome, duration });
        };
        // A call that is given up is counted where it is dropped.
        let mut unless_dropped = OnDrop(Some(|| report(UpstreamOutcome::Cancelled)));
        let _place = self.core.take_place(deadline).await.inspect_err(|_| unless_dropped.disarm())?;
        let found = self.core.find(pin, deadline).await;
        let (connection, has_output_schema) = found.inspect_err(|_| {
            unless_dropped.disarm();
            report(UpstreamOutcome::Unavailable);
        })?;
        let called = call::call(&connection, &pin.name, arguments, Some(context), deadline).await;
        unless_dropped.disarm();
        report(match &called {
            Ok(result) if result.is_error == Some(true) => UpstreamOutcome::Error,
            Ok(_) => UpstreamOutcome::Answered,
            Err(failure) => failure.outcome(),
        });
        match &called {
            Err(CallFailure::Gone(why)) => connection.lost.set(why),
            Err(CallFailure::Lost(_) | CallFailure::NotAccepted(_)) => self.core.look_again.notify_one(),
            Err(CallFailure::AsksForInput) => {
                self.core.counters.count_refused_request();
                self.core.events.emit(UpstreamEvent::Refused(RefusedRequest::Elicitation));
            }
            _ => {}
        }
        Ok(called.map(|result| CallAnswer { result, has_output_schema }))
    }

    /// The server, for operators.
    pub(crate) fn view(&self) -> UpstreamView {
        let status = self.core.status.borrow().clone();
        let (config, counters) = (&self.core.config, &self.core.counters);
        UpstreamView {
            name: config.name.to_string(),
            transport: match &config.transport {
                UpstreamTransport::Stdio(_) => ShownTransport::Stdio,
                UpstreamTransport::Http(_) => ShownTransport::Http,
            },
            address: config.address(),
            state: status.state(),
            since_ms: status.since_ms(),
            trouble: match &status.phase {
                Phase::Down { reason, .. } => Some(reason.to_string()),
                _ => None,
            },
            restarts: counters.restarts(),
            calls: counters.calls(),
            failures: counters.failures(),
            refused_requests: counters.refused_requests(),
            tools: self.core.pins.describe(status.tools.as_deref()),
            not_imported: status
                .tools
                .as_deref()
                .map(|live| self.core.pins.not_imported(live))
                .unwrap_or_default(),
            server: status.server,
        }
    }

    /// Stops the server, and returns when it is gone.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
    }
}

/// The supervisor sees it and stops the server. Should its runtime be gone, what it holds is dropped with it, and the
/// process is killed there.
impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl UpstreamCore {
    fn note_end(&self) {
        self.status.send_modify(|status| status.enter(Phase::Idle));
        self.is_started.store(false, Ordering::Release);
    }

    /// Waits for one of the places that the server has for calls.
    async fn take_place(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, Unavailable> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let max_waiting = self.config.limits.max_concurrent_calls.saturating_mul(MAX_WAITING_PER_PLACE);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Unavailable::Busy);
        }
        let _waiting = OnDrop(Some(|| {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }));
        match tokio::time::timeout_at(deadline, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            // It is never closed.
            Ok(Err(_)) | Err(_) => Err(Unavailable::Busy),
        }
    }

    /// The connection, if the tool may be called on it. The very first connection is waited for.
    async fn find(&self, pin: &Pin, deadline: Instant) -> Result<(Arc<Connection>, bool), Unavailable> {
        let mut statuses = self.status.subscribe();
        let decided = statuses.wait_for(|status| !matches!(status.phase, Phase::Idle | Phase::Connecting));
        let status = match tokio::time::timeout_at(deadline, decided).await {
            Ok(Ok(status)) => status.clone(),
            Ok(Err(_)) | Err(_) => return Err(Unavailable::TimedOut),
        };
        let connection = match &status.phase {
            Phase::Ready(connection) if connection.lost.reason().is_none() => connection.clone(),
            Phase::Down { retry_at, .. } => {
                return Err(Unavailable::Down {
                    retry_after: retry_at.saturating_duration_since(Instant::now()),
                });
            }
            // It was lost a moment ago, and its supervisor is about to say so.
            _ => return Err(Unavailable::Down { retry_after: self.config.limits.min_backoff }),
        };
        match status.tools.as_deref().map(|live| pin.compare(live)) {
            Some(Comparison::Matches(live)) => Ok((connection, live.tool.output_schema.is_some())),
            Some(Comparison::Drifted(_)) => Err(Unavailable::Drifted),
            Some(Comparison::Missing) | None => Err(Unavailable::Missing),
        }
    }
}

/// Does something when it is dropped, unless it is told not to.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}
