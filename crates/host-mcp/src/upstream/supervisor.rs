//! Keeps the connection of one server: makes it, watches it, compares what is published, and makes it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::UpstreamEvent;
use tokio::sync::{Notify, watch};

use super::UpstreamCore;
use super::backoff::{self, Backoff};
use super::client::UpstreamClient;
use super::connection::{Opening, OwnedConnection};
use super::state::Phase;

/// How often the list of tools is read while nothing says that it has changed.
const LIST_INTERVAL: Duration = Duration::from_secs(300);
/// The least time between two readings, however often a server says that its tools have changed.
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(2);
/// A server that does not list its tools within this is taken to be dead.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs until it is told to stop; then the server is stopped too.
pub(crate) async fn run(core: Arc<UpstreamCore>, mut stop: watch::Receiver<bool>) {
    let mut backoff = Backoff::new(core.config.limits.min_backoff, core.config.limits.max_backoff);
    let mut opening = Opening::Handshake;
    let mut is_first = true;
    while !*stop.borrow() {
        backoff.note_attempt(Instant::now());
        let changed = Arc::new(Notify::new());
        let opened = tokio::select! {
            opened = open(&core, &mut opening, &changed) => opened,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let begun = Instant::now();
        let reason = match opened {
            Err(reason) => reason,
            Ok(mut connection) => {
                announce(&core, &connection, &mut is_first);
                let reason = tokio::select! {
                    reason = watch_over(&core, &mut connection, &changed) => reason,
                    _ = stop.wait_for(|stop| *stop) => "the connection was closed".to_owned(),
                };
                if !*stop.borrow() {
                    // Calls are refused from now on; putting the connection away takes its time.
                    core.set_down(&reason, Duration::ZERO);
                }
                connection.close(&reason, core.config.limits.stop_timeout).await;
                reason
            }
        };
        if *stop.borrow() {
            break;
        }
        let pause = backoff.pause(begun.elapsed(), backoff::chance(), Instant::now());
        core.set_down(&reason, pause);
        let (refused, ignored) = (core.counters.refused_messages(), core.counters.ignored_messages());
        tracing::warn!(server = %core.config.name, reason, ?pause, refused, ignored, "upstream server is not connected");
        core.events.emit(UpstreamEvent::Lost { reason, retry_after: pause });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    core.set_down("the host was stopped", Duration::ZERO);
}

/// A connection whose tools are known and compared, within the time that starting may take.
async fn open(
    core: &UpstreamCore,
    opening: &mut Opening,
    changed: &Arc<Notify>,
) -> Result<OwnedConnection, String> {
    let limits = &core.config.limits;
    let opening = async {
        let client = || UpstreamClient {
            events: core.events.clone(),
            counters: core.counters.clone(),
            progress: Arc::default(),
            changed: changed.clone(),
        };
        let connection = match OwnedConnection::open(&core.config, *opening, client()).await {
            Ok(connection) => connection,
            Err(error) if error.is_opening_refused => {
                *opening = match opening {
                    Opening::Handshake => Opening::Discover,
                    Opening::Discover => Opening::Handshake,
                };
                let opened = OwnedConnection::open(&core.config, *opening, client()).await;
                opened.map_err(|other| format!("{}; {}", error.reason, other.reason))?
            }
            Err(error) => return Err(error.reason),
        };
        let tools = connection.list_tools(&core.config).await?;
        core.compare(tools);
        Ok(connection)
    };
    let timed = tokio::time::timeout(limits.start_timeout, opening).await;
    timed.unwrap_or_else(|_| {
        Err(format!(
            "it was not ready within {} s; `start_timeout_seconds` is the limit",
            limits.start_timeout.as_secs_f64()
        ))
    })
}

/// The same without a supervisor.
pub(crate) async fn open_once(core: &UpstreamCore) -> Result<OwnedConnection, String> {
    open(core, &mut Opening::Handshake, &Arc::default()).await
}

fn announce(core: &UpstreamCore, connection: &OwnedConnection, is_first: &mut bool) {
    let server = connection.shared.server.clone();
    core.set_ready(connection.shared.clone());
    tracing::info!(server = %core.config.name, protocol = server.protocol_version, "upstream server connected");
    core.events.emit(match std::mem::take(is_first) {
        true => UpstreamEvent::Connected(server),
        false => UpstreamEvent::Restarted { server, restarts: core.counters.count_restart() },
    });
}

/// Ends with the connection. Meanwhile the list of tools is read when it may have changed, and from time to time.
async fn watch_over(core: &UpstreamCore, connection: &mut OwnedConnection, changed: &Notify) -> String {
    loop {
        tokio::select! {
            reason = connection.wait() => return reason,
            () = tokio::time::sleep(LIST_INTERVAL) => {}
            () = changed.notified() => {}
            () = core.look_again.notified() => {}
        }
        let listing = tokio::time::timeout(LIST_TIMEOUT, connection.list_tools(&core.config)).await;
        match listing {
            Ok(Ok(tools)) => core.compare(tools),
            Ok(Err(reason)) => return reason,
            Err(_) => return "it does not list its tools in time".to_owned(),
        }
        tokio::select! {
            reason = connection.wait() => return reason,
            () = tokio::time::sleep(MIN_LIST_INTERVAL) => {}
        }
    }
}

impl UpstreamCore {
    /// Takes what is published now, and reports what differs from what was imported.
    fn compare(&self, tools: super::tools::LiveTools) {
        for event in self.pins.check(&tools) {
            self.events.emit(event);
        }
        self.status.send_modify(|status| status.tools = Some(Arc::new(tools)));
    }

    fn set_ready(&self, connection: Arc<super::connection::Connection>) {
        self.status.send_modify(|status| {
            status.server = Some(connection.server.clone());
            status.enter(Phase::Ready(connection));
        });
    }

    fn set_down(&self, reason: &str, pause: Duration) {
        let retry_at = tokio::time::Instant::now() + pause;
        self.status.send_modify(|status| match &mut status.phase {
            // Since when it is down does not change with every try.
            Phase::Down { reason: known, retry_at: known_retry } => {
                *known = reason.into();
                *known_retry = retry_at;
            }
            _ => status.enter(Phase::Down { reason: reason.into(), retry_at }),
        });
    }
}
