//! A provider at the other end of a pipe, played by the test line by line.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use quarterdeck_contracts::{HandlerAnswer, ToolResponse};
use quarterdeck_contracts::{LiveConnection, LiveError, LiveEvent, LiveSetup, Meta};
use quarterdeck_transports::live::{DialFuture, Dialer, Stream};
use quarterdeck_websocket::{Limits, Message, Request, WebSocket, receive_upgrade};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

/// Hands the other end of every stream that is dialled to the test.
pub(crate) struct Pipe {
    ends: mpsc::UnboundedSender<DuplexStream>,
    pub(crate) dialled_urls: Mutex<Vec<String>>,
    size: usize,
}

impl Pipe {
    pub(crate) fn new(size: usize) -> (Arc<Self>, mpsc::UnboundedReceiver<DuplexStream>) {
        let (ends, received) = mpsc::unbounded_channel();
        (Arc::new(Self { ends, dialled_urls: Mutex::default(), size }), received)
    }
}

impl Dialer for Pipe {
    fn dial(&self, url: &Url) -> DialFuture {
        self.dialled_urls.lock().unwrap().push(url.to_string());
        let (ours, theirs) = tokio::io::duplex(self.size);
        let sent = self.ends.send(theirs);
        Box::pin(async move {
            sent.map_err(std::io::Error::other)?;
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }
}

/// The provider's end.
pub(crate) struct Provider {
    pub(crate) request: Request,
    pub(crate) socket: WebSocket<DuplexStream>,
}

impl Provider {
    pub(crate) async fn accept(ends: &mut mpsc::UnboundedReceiver<DuplexStream>) -> Self {
        let pending = receive_upgrade(ends.recv().await.unwrap()).await.unwrap();
        let request = pending.request.clone();
        let socket = pending.accept(Limits { max_message_bytes: 16 << 20 }).await.unwrap();
        Self { request, socket }
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.socket.send_text(text);
        self.socket.flush().await.unwrap();
    }

    /// The next message that arrives; `None` once the client has closed.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        loop {
            match self.socket.next() {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(text).unwrap()),
                Some(Ok(Message::Close(..))) => {
                    let _ = self.socket.flush().await;
                    return None;
                }
                Some(other) => assert!(matches!(other, Ok(Message::Ping(_) | Message::Pong)), "{other:?}"),
                None => self.socket.fill().await.ok()?,
            }
        }
    }
}

/// The next event, pending for it; flushes as the agent does.
pub(crate) async fn event(connection: &mut Box<dyn LiveConnection>) -> Result<LiveEvent<'static>, LiveError> {
    loop {
        if let Some(event) = connection.next() {
            return Ok(owned(event));
        }
        poll_fn(|context| {
            let _ = connection.poll_flush(context);
            connection.poll_fill(context)
        })
        .await?;
    }
}

/// Sends what is in line.
pub(crate) async fn flush(connection: &mut Box<dyn LiveConnection>) {
    poll_fn(|context| connection.poll_flush(context)).await.unwrap();
}

/// The same event without what it borrows.
pub(crate) fn owned(event: LiveEvent<'_>) -> LiveEvent<'static> {
    use quarterdeck_contracts::{Audio, TranscriptPiece};
    let words = |words: TranscriptPiece<'_>| TranscriptPiece {
        text: words.text.into_owned().into(),
        stage: words.stage,
    };
    match event {
        LiveEvent::Audio(Audio::Pcm(bytes)) => LiveEvent::Audio(Audio::Pcm(bytes.into_owned().into())),
        LiveEvent::Audio(Audio::Base64(text)) => LiveEvent::Audio(Audio::Base64(text.into_owned().into())),
        LiveEvent::InputTranscript(heard) => LiveEvent::InputTranscript(words(heard)),
        LiveEvent::OutputTranscript(said) => LiveEvent::OutputTranscript(words(said)),
        LiveEvent::Calls(calls) => LiveEvent::Calls(calls),
        LiveEvent::CallsCancelled(ids) => LiveEvent::CallsCancelled(ids),
        LiveEvent::SpeechStarted => LiveEvent::SpeechStarted,
        LiveEvent::Interrupted { end_follows } => LiveEvent::Interrupted { end_follows },
        LiveEvent::ResponseFailed => LiveEvent::ResponseFailed,
        LiveEvent::GenerationComplete => LiveEvent::GenerationComplete,
        LiveEvent::TurnComplete { more_follows } => LiveEvent::TurnComplete { more_follows },
        LiveEvent::GoingAway { left } => LiveEvent::GoingAway { left },
        LiveEvent::ResumptionHandle(handle) => LiveEvent::ResumptionHandle(handle),
        LiveEvent::Usage(usage) => LiveEvent::Usage(usage),
        LiveEvent::Warning(what) => LiveEvent::Warning(what),
        other => panic!("an event that the tests do not know: {other:?}"),
    }
}

pub(crate) fn opening() -> LiveSetup {
    LiveSetup { system: "You are a terse assistant.".into(), ..LiveSetup::default() }
}

pub(crate) fn envelope(answer: HandlerAnswer) -> ToolResponse {
    let meta: Meta = serde_json::from_value(json!({
        "toolId": "x", "toolVersion": "1.0.0", "registryVersion": "r1", "responseSchemaVersion": "1",
        "duration": 3, "timestamp": "2026-11-15T09:00:00Z",
    }))
    .unwrap();
    answer.stamp(meta)
}
