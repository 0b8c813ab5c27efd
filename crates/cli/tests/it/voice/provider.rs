//! A provider in the process of the test, so that the test can ask it what it has seen, and make it deaf.

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

use super::server::PATIENCE;

/// A simulated provider that listens.
pub(crate) struct Provider {
    pub(crate) address: String,
    simulator: Arc<Mutex<LiveSimulator>>,
    is_deaf: watch::Sender<bool>,
    _accepting: JoinSet<()>,
}

impl Provider {
    /// Plays these turns on every conversation, as fast as it can.
    pub(crate) async fn playing(turns: &Value) -> Self {
        Self::of(scenario(turns)).await
    }

    pub(crate) async fn of(scenario: Scenario) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let simulator = Arc::new(Mutex::new(LiveSimulator::from_scenario(scenario)));
        let (is_deaf, _) = watch::channel(false);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, simulator.clone(), is_deaf.clone()));
        Self { address, simulator, is_deaf, _accepting: accepting }
    }

    /// Plays something else from the next connection on, and forgets what it has seen.
    pub(crate) fn plays(&self, scenario: Scenario) {
        *self.simulator.lock().unwrap() = LiveSimulator::from_scenario(scenario);
    }

    pub(crate) fn report(&self) -> Report {
        self.simulator.lock().unwrap().report()
    }

    /// From now on nothing that is sent to it arrives, and it does not notice who goes.
    pub(crate) fn goes_deaf(&self) {
        self.is_deaf.send_replace(true);
    }

    /// Hears again on new connections. What it did not hear is lost, with the connections.
    pub(crate) fn hears_again(&self) {
        self.is_deaf.send_replace(false);
    }

    /// Waits for something to be in the report, and looks for faults in it.
    pub(crate) async fn has_seen(&self, what: &str, is_there: impl Fn(&Report) -> bool) -> Report {
        let since = Instant::now();
        loop {
            let report = self.report();
            assert_eq!(report.faults, [""; 0], "{what}: {report:#?}");
            if is_there(&report) {
                return report;
            }
            assert!(since.elapsed() < PATIENCE, "{what} never came: {report:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// These turns, as fast as they can be played.
pub(crate) fn scenario(turns: &Value) -> Scenario {
    Scenario::parse(&as_text(turns)).unwrap()
}

/// The same as a file has it.
pub(crate) fn as_text(turns: &Value) -> String {
    json!({ "turnEnds": "said", "audio": { "speed": 0 }, "turns": turns }).to_string()
}

async fn accept(listener: TcpListener, simulator: Arc<Mutex<LiveSimulator>>, is_deaf: watch::Sender<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let simulator = simulator.lock().unwrap().clone();
        let mut deafness = is_deaf.subscribe();
        let ear = Ear { stream, is_deaf: is_deaf.subscribe() };
        connections.spawn(async move {
            tokio::select! {
                biased;
                // Whoever was deaf has missed too much: the connection is given up, without a complaint.
                () = recovered(&mut deafness) => {}
                _ = simulator.serve(ear) => {}
            }
        });
    }
}

async fn recovered(deafness: &mut watch::Receiver<bool>) {
    let _ = deafness.wait_for(|is_deaf| *is_deaf).await;
    let _ = deafness.wait_for(|is_deaf| !*is_deaf).await;
}

/// A stream whose reading end can be stopped up.
struct Ear {
    stream: TcpStream,
    is_deaf: watch::Receiver<bool>,
}

impl AsyncRead for Ear {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if *self.is_deaf.borrow() {
            // Nobody hears with this one again.
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Ear {
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
