//! A client that says what a test wants and notes what it hears.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use quarterdeck_agents::voice::{ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};
use quarterdeck_contracts::{Audio, Speaker};
use serde_json::json;
use tokio::sync::mpsc;

use super::player::Player;
use super::{outcome, run_until_idle};

/// What a client sends, for keeps.
#[derive(Debug, Clone)]
pub(crate) enum ClientAction {
    Audio(Vec<u8>),
    Text(String),
    Confirm(String, bool),
    Played(Duration),
    Drained,
    Interrupt,
    Stop,
}

/// The test's end of a line.
pub(crate) struct FakeClient {
    says: Option<mpsc::UnboundedSender<ClientAction>>,
    received: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
    /// Whether the client takes what it is sent.
    reads: Arc<Mutex<bool>>,
    waiting: Arc<Mutex<usize>>,
    /// The task that waits for the client to read.
    flushing: Arc<Mutex<Option<Waker>>>,
    player: Arc<Mutex<Player>>,
}

/// The agent's end of it.
struct FakeLink {
    from: mpsc::UnboundedReceiver<ClientAction>,
    arrived: VecDeque<ClientAction>,
    lent: Option<ClientAction>,
    received: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<bool>>,
    waiting: Arc<Mutex<usize>>,
    flushing: Arc<Mutex<Option<Waker>>>,
    player: Arc<Mutex<Player>>,
}

impl FakeClient {
    pub(crate) fn new() -> (Self, Box<dyn ClientLink>) {
        let (says, from) = mpsc::unbounded_channel();
        let client = Self {
            says: Some(says),
            received: Arc::default(),
            tokens: Arc::default(),
            reads: Arc::new(Mutex::new(true)),
            waiting: Arc::default(),
            flushing: Arc::default(),
            player: Arc::default(),
        };
        let line = FakeLink {
            from,
            arrived: VecDeque::new(),
            lent: None,
            received: client.received.clone(),
            tokens: client.tokens.clone(),
            reads: client.reads.clone(),
            waiting: client.waiting.clone(),
            flushing: client.flushing.clone(),
            player: client.player.clone(),
        };
        (client, Box::new(line))
    }

    pub(crate) async fn send(&self, action: ClientAction) {
        self.says.as_ref().unwrap().send(action).unwrap();
        run_until_idle().await;
    }

    pub(crate) async fn send_text(&self, text: &str) {
        self.send(ClientAction::Text(text.to_owned())).await;
    }

    /// Its network is gone.
    pub(crate) async fn disconnect(&mut self) {
        self.says = None;
        run_until_idle().await;
    }

    /// What it was told since the last look, one line each.
    pub(crate) fn received(&self) -> String {
        let mut received = std::mem::take(&mut *self.received.lock().unwrap()).join("\n");
        received.push('\n');
        received
    }

    pub(crate) fn token(&self) -> String {
        self.tokens.lock().unwrap().last().expect("a confirmation request").clone()
    }

    pub(crate) fn stop_reading(&self) {
        *self.reads.lock().unwrap() = false;
    }

    pub(crate) async fn resume_reading(&self) {
        *self.reads.lock().unwrap() = true;
        self.flushing.lock().unwrap().take().inspect(Waker::wake_by_ref);
        run_until_idle().await;
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        *self.waiting.lock().unwrap()
    }

    /// Plays what has come up to now, and reports it as the page does.
    pub(crate) async fn play(&self) {
        let reports = {
            let mut player = self.player.lock().unwrap();
            player.advance();
            player.take_reports()
        };
        for report in reports {
            self.send(report).await;
        }
    }

    /// Every sample that came.
    pub(crate) fn received_samples(&self) -> Vec<i16> {
        self.player.lock().unwrap().received().to_vec()
    }

    /// Every sample that was played.
    pub(crate) fn heard_samples(&self) -> Vec<i16> {
        self.player.lock().unwrap().heard().to_vec()
    }
}

impl ClientLink for FakeLink {
    fn poll_fill(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Disconnect>> {
        match self.from.poll_recv(context) {
            Poll::Ready(Some(says)) => {
                self.arrived.push_back(says);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(None) => Poll::Ready(Err(Disconnect::Lost)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<ClientMessage<'_>> {
        self.lent = Some(self.arrived.pop_front()?);
        Some(match self.lent.as_ref()? {
            ClientAction::Audio(bytes) => ClientMessage::Audio(Audio::Pcm(bytes.as_slice().into())),
            ClientAction::Text(text) => ClientMessage::Text(text.as_str()),
            ClientAction::Confirm(token, is_approved) => {
                ClientMessage::Confirm { token, is_approved: *is_approved }
            }
            ClientAction::Played(time) => ClientMessage::Played(*time),
            ClientAction::Drained => ClientMessage::Drained,
            ClientAction::Interrupt => ClientMessage::Interrupt,
            ClientAction::Stop => ClientMessage::Stop,
        })
    }

    fn send(&mut self, received: ServerMessage<'_>) {
        let line = match received {
            ServerMessage::Ready { is_resumed, provider, .. } => {
                format!("ready {provider} resumed={is_resumed}")
            }
            ServerMessage::Audio(audio) => {
                *self.waiting.lock().unwrap() += audio.samples_len();
                if let Audio::Pcm(bytes) = &audio {
                    self.player.lock().unwrap().take(bytes);
                }
                format!("audio {}", audio.samples_len())
            }
            ServerMessage::Transcript { by, text, is_final, .. } => {
                let by = if by == Speaker::User { "user" } else { "model" };
                format!("{by}{}: {text}", if is_final { "" } else { " (interim)" })
            }
            ServerMessage::ToolCall { id, name, args } => format!("call {id} {name} {args}"),
            ServerMessage::ToolResult { id, response, .. } => {
                format!("result {id} {}", outcome(&response.outcome))
            }
            ServerMessage::ConfirmationRequest { id, request } => {
                let token = request.token.as_ref().expect("a client gets the token");
                self.tokens.lock().unwrap().push(token.expose().to_owned());
                format!("asked {id} {}", request.preview)
            }
            ServerMessage::Progress { id, text } => format!("progress {id} {text}"),
            ServerMessage::Pause => {
                self.player.lock().unwrap().pause();
                "pause".into()
            }
            ServerMessage::Resume => {
                self.player.lock().unwrap().resume();
                "resume".into()
            }
            ServerMessage::Interrupted => {
                self.player.lock().unwrap().flush();
                "interrupted".into()
            }
            ServerMessage::TurnComplete => "turn complete".into(),
            ServerMessage::Blocked(block) => format!("blocked: {}", block.message),
            ServerMessage::End(end) => format!(
                "end {} closing={} text={}",
                end.reason,
                end.closing_message.as_deref().unwrap_or("-"),
                end.text_response.as_deref().unwrap_or("-")
            ),
            ServerMessage::Error(error) => format!("error {}: {}", error.kind, error.message),
            ServerMessage::GoingAway { in_ms } => format!("going away in {in_ms}"),
            ServerMessage::Partial { id, response } => format!("partial {id} {}", json!(response)["data"]),
            ServerMessage::Message(value) => format!("message {value}"),
        };
        self.received.lock().unwrap().push(line);
    }

    fn poll_flush(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Disconnect>> {
        if !*self.reads.lock().unwrap() {
            *self.flushing.lock().unwrap() = Some(context.waker().clone());
            return Poll::Pending;
        }
        *self.waiting.lock().unwrap() = 0;
        Poll::Ready(Ok(()))
    }

    fn queued_bytes(&self) -> usize {
        *self.waiting.lock().unwrap()
    }

    fn drop_audio(&mut self, keep: usize) -> usize {
        let mut waiting = self.waiting.lock().unwrap();
        let dropped = waiting.saturating_sub(keep);
        *waiting -= dropped;
        dropped
    }

    fn ping(&mut self) {
        self.received.lock().unwrap().push("ping".into());
    }

    fn close(self: Box<Self>, why: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.received.lock().unwrap().push(format!("closed: {why:?}"));
        Box::pin(std::future::ready(()))
    }
}
