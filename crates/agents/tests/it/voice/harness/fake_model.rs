//! A model that is spoken with, and does what a test wants.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use quarterdeck_contracts::{
    LiveConnecting, LiveConnection, LiveError, LiveErrorKind, LiveEvent, LiveInput, LiveModel, LiveSetup,
    Outcome, Provider,
};
use tokio::sync::mpsc;

use super::run_until_idle;

type Sent = Result<LiveEvent<'static>, LiveError>;

/// A model that is spoken with, played by the test.
#[derive(Default)]
pub(crate) struct FakeLiveModel {
    setups: Mutex<Vec<LiveSetup>>,
    connections: Mutex<Vec<Option<mpsc::UnboundedSender<Sent>>>>,
    /// Every input, with the number of the connection.
    inputs: Arc<Mutex<Vec<(usize, String)>>>,
    /// How long it takes to connect.
    pub(crate) delay: Mutex<Duration>,
    /// How the next attempts to connect fail.
    pub(crate) fails: Mutex<VecDeque<LiveErrorKind>>,
}

struct FakeConnection {
    number: usize,
    from: mpsc::UnboundedReceiver<Sent>,
    arrived: VecDeque<LiveEvent<'static>>,
    inputs: Arc<Mutex<Vec<(usize, String)>>>,
}

impl FakeLiveModel {
    /// ClientAction something on the last connection.
    pub(crate) async fn send(&self, event: LiveEvent<'static>) {
        self.send_all([event]).await;
    }

    /// ClientAction several things on an older connection, counted from 0.
    pub(crate) async fn send_on(&self, number: usize, events: impl IntoIterator<Item = LiveEvent<'static>>) {
        for event in events {
            let connections = self.connections.lock().unwrap();
            connections[number].as_ref().unwrap().send(Ok(event)).unwrap();
        }
        run_until_idle().await;
    }

    /// ClientAction several things at once.
    pub(crate) async fn send_all(&self, events: impl IntoIterator<Item = LiveEvent<'static>>) {
        for event in events {
            let connections = self.connections.lock().unwrap();
            connections.last().unwrap().as_ref().unwrap().send(Ok(event)).unwrap();
        }
        run_until_idle().await;
    }

    /// The connection breaks.
    pub(crate) async fn drop_connection(&self) {
        let sender = self.connections.lock().unwrap().last_mut().unwrap().take().unwrap();
        let _ = sender.send(Err(error(LiveErrorKind::Lost)));
        run_until_idle().await;
    }

    /// An older connection breaks, counted from 0.
    pub(crate) async fn drop_connection_of(&self, number: usize) {
        let sender = self.connections.lock().unwrap()[number].take().unwrap();
        let _ = sender.send(Err(error(LiveErrorKind::Lost)));
        run_until_idle().await;
    }

    pub(crate) fn setups(&self) -> Vec<LiveSetup> {
        self.setups.lock().unwrap().clone()
    }

    /// What it got since the last look, one line each.
    pub(crate) fn take_inputs(&self) -> String {
        let inputs = std::mem::take(&mut *self.inputs.lock().unwrap());
        inputs.into_iter().map(|(number, input)| format!("{number} {input}\n")).collect()
    }
}

pub(crate) fn error(kind: LiveErrorKind) -> LiveError {
    LiveError { kind, model: "fake/1".into(), code: Some(1011), detail: "told to".into() }
}

impl LiveModel for FakeLiveModel {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "fake/1"
    }

    fn connect(&self, setup: LiveSetup) -> LiveConnecting {
        self.setups.lock().unwrap().push(setup);
        if let Some(kind) = self.fails.lock().unwrap().pop_front() {
            return Box::pin(std::future::ready(Err(error(kind))));
        }
        let (sender, from) = mpsc::unbounded_channel();
        let mut connections = self.connections.lock().unwrap();
        connections.push(Some(sender));
        let number = connections.len();
        let inputs = self.inputs.clone();
        let connection = FakeConnection { number, from, arrived: VecDeque::new(), inputs };
        let delay = *self.delay.lock().unwrap();
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            Ok(Box::new(connection) as Box<dyn LiveConnection>)
        })
    }
}

impl LiveConnection for FakeConnection {
    fn poll_fill(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), LiveError>> {
        match self.from.poll_recv(context) {
            Poll::Ready(Some(Ok(event))) => {
                self.arrived.push_back(event);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Ready(None) => Poll::Pending,
            Poll::Pending => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        self.arrived.pop_front()
    }

    fn send(&mut self, input: LiveInput<'_>) {
        let line = match input {
            LiveInput::Audio(audio) => format!("audio {}", audio.samples_len()),
            LiveInput::AudioEnded => "audio ended".into(),
            LiveInput::Text(text) => format!("text {text}"),
            LiveInput::Filler { request, .. } => format!("filler {request}"),
            LiveInput::Note { text, asks } => format!("note asks={asks} {text}"),
            LiveInput::Result(result) => {
                let silent = if result.is_silent { " silent" } else { "" };
                let last = if result.is_last { " last" } else { "" };
                let id = result.id.unwrap_or("-");
                format!("result {id} {}{silent}{last}", outcome(&result.response.outcome))
            }
            LiveInput::Interrupt { .. } => "interrupt".into(),
            other => format!("{other:?}"),
        };
        self.inputs.lock().unwrap().push((self.number, line));
    }

    fn poll_flush(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), LiveError>> {
        Poll::Ready(Ok(()))
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.inputs.lock().unwrap().push((self.number, "closed".into()));
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success(data) => data.to_string(),
        Outcome::Failure(error) => error.kind.to_string(),
    }
}
