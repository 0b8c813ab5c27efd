//! A provider in the test's process, so that the test can read its report and stop it from reading.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quarterdeck_simulator::live::{LiveSimulator, Report, Scenario};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::server::TIMEOUT;

pub(crate) struct Provider {
    pub(crate) address: String,
    simulator: Arc<Mutex<LiveSimulator>>,
    pauses: watch::Sender<Pauses>,
    _accepting: JoinSet<()>,
}

/// Grows with each pause and with each end of one: odd while it pauses. A connection compares it with what it was when it
/// began, so that it misses no pause, however short.
type Pauses = u64;

impl Provider {
    /// Plays these turns on every conversation, as fast as it can.
    pub(crate) async fn with_turns(turns: &Value) -> Self {
        Self::new(scenario(turns)).await
    }

    pub(crate) async fn new(scenario: Scenario) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let simulator = Arc::new(Mutex::new(LiveSimulator::from_scenario(scenario)));
        let (pauses, _) = watch::channel(0);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, simulator.clone(), pauses.clone()));
        Self { address, simulator, pauses, _accepting: accepting }
    }

    /// Plays another scenario from the next connection on, with a new report.
    pub(crate) fn set_scenario(&self, scenario: Scenario) {
        *self.simulator.lock().unwrap() = LiveSimulator::from_scenario(scenario);
    }

    pub(crate) fn report(&self) -> Report {
        self.simulator.lock().unwrap().report()
    }

    /// From now on it reads nothing, so that it does not notice lost connections either.
    pub(crate) fn stop_reading(&self) {
        self.pauses.send_modify(|pauses| *pauses += 1);
    }

    /// Reads again on new connections. The old ones are dropped.
    pub(crate) fn resume_reading(&self) {
        self.pauses.send_modify(|pauses| *pauses += 1);
    }

    /// Waits for a state of the report, and checks that it has no faults.
    pub(crate) async fn wait_for_report(&self, what: &str, is_there: impl Fn(&Report) -> bool) -> Report {
        let since = Instant::now();
        loop {
            let report = self.report();
            assert_eq!(report.faults, [""; 0], "{what}: {report:#?}");
            if is_there(&report) {
                return report;
            }
            assert!(since.elapsed() < TIMEOUT, "{what} never came: {report:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// These turns, as fast as they can be played.
pub(crate) fn scenario(turns: &Value) -> Scenario {
    Scenario::parse(&as_text(turns)).unwrap()
}

pub(crate) fn as_text(turns: &Value) -> String {
    json!({ "turnEnds": "said", "audio": { "speed": 0 }, "turns": turns }).to_string()
}

async fn accept(listener: TcpListener, simulator: Arc<Mutex<LiveSimulator>>, pauses: watch::Sender<Pauses>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let simulator = simulator.lock().unwrap().clone();
        let mut pauses = pauses.subscribe();
        let begun = *pauses.borrow();
        let stream = PausableStream { stream, pauses: pauses.clone(), begun };
        connections.spawn(async move {
            tokio::select! {
                biased;
                // A connection that was paused has missed input and is dropped.
                () = wait_for_resume(&mut pauses, begun) => {}
                _ = simulator.serve(stream) => {}
            }
        });
    }
}

async fn wait_for_resume(pauses: &mut watch::Receiver<Pauses>, begun: Pauses) {
    let _ = pauses.wait_for(|pauses| *pauses != begun && pauses.is_multiple_of(2)).await;
}

/// A stream whose reads can be paused for good.
struct PausableStream {
    stream: TcpStream,
    pauses: watch::Receiver<Pauses>,
    begun: Pauses,
}

impl AsyncRead for PausableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let pauses = *self.pauses.borrow();
        if pauses != self.begun || !pauses.is_multiple_of(2) {
            // A paused connection is never read again.
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PausableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
