//! An open conversation with OpenAI Realtime.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64_simd::STANDARD;
use memchr::memmem;
use quarterdeck_contracts::{Audio, LiveConnection, LiveError, LiveEvent, LiveInput};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::messages;
use super::server_events::{Opening, ServerEvents};
use crate::live::{
    ErrorContext, LiveEndpoint, ProviderSocket, Received, Resampler, holds_whole_samples, is_empty, samples,
};

/// A session ends after an hour without a notice, so the client gives one.
const GO_AWAY_AFTER: Duration = Duration::from_secs(55 * 60);
const GO_AWAY_NOTICE: Duration = Duration::from_secs(5 * 60);
/// Sample rates of the client's audio, and of what the provider takes.
const RATES: (u32, u32) = (16_000, 24_000);

pub(super) struct Connection {
    socket: ProviderSocket,
    errors: ErrorContext,
    events: ServerEvents,
    resampler: Resampler,
    go_away_timer: Option<Pin<Box<Sleep>>>,
    response_timer: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    /// Opens a conversation. To be called within a time limit.
    pub(super) async fn open(
        endpoint: LiveEndpoint,
        update: Value,
        history: Vec<Value>,
        asks: bool,
    ) -> Result<Self, LiveError> {
        let socket = endpoint.connect().await?;
        let (from, to) = RATES;
        let mut connection = Self {
            errors: socket.errors.clone(),
            socket,
            events: ServerEvents::default(),
            resampler: Resampler::new(from, to),
            go_away_timer: Some(Box::pin(sleep(GO_AWAY_AFTER))),
            response_timer: None,
        };
        connection.wait_until(Opening::Created).await?;
        connection.socket.send(&update);
        connection.socket.flush().await?;
        connection.wait_until(Opening::Ready).await?;
        for message in &history {
            connection.socket.send(message);
        }
        if asks {
            connection.events.turn_taking.request_response();
        }
        connection.send_queued();
        connection.socket.flush().await?;
        Ok(connection)
    }

    async fn wait_until(&mut self, wanted: Opening) -> Result<(), LiveError> {
        while self.events.opening != wanted {
            if let Opening::Refused(why) = &self.events.opening {
                return Err(self.errors.session_refused(why));
            }
            match self.socket.next() {
                Some(Received::Message(message)) => self.events.take(message, Instant::now()),
                Some(Received::Control) => {}
                None => self.socket.fill().await?,
            }
        }
        Ok(())
    }

    fn send_queued(&mut self) {
        for message in self.events.turn_taking.out.drain(..) {
            self.socket.send(&message);
        }
    }

    /// Whether the timer has fired. It fires once.
    fn poll_go_away(&mut self, context: &mut Context<'_>) -> bool {
        let is_due = self.go_away_timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if is_due {
            self.go_away_timer = None;
        }
        is_due
    }

    /// Abandons a response that was in doubt for too long.
    fn poll_response_timer(&mut self, context: &mut Context<'_>) {
        let Some(until) = self.events.turn_taking.response_deadline() else {
            self.response_timer = None;
            return;
        };
        let timer = self.response_timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.as_mut().poll(context).is_ready() {
            self.response_timer = None;
            self.events.abandon_response();
        }
    }
}

impl LiveConnection for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if self.events.is_empty() && self.poll_go_away(context) {
            self.events.push(LiveEvent::GoingAway { left: Some(GO_AWAY_NOTICE) });
        }
        self.poll_response_timer(context);
        if !self.events.is_empty() {
            return Poll::Ready(Ok(()));
        }
        // What arrived may need an answer, and nothing else may be sent soon.
        self.send_queued();
        self.socket.poll_fill(context)
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        if let Some(event) = self.events.next_event() {
            return Some(self.errors.redact_event(event));
        }
        let Received::Message(message) = self.socket.next()? else { return None };
        let now = Instant::now();
        let Some(delta) = AudioDelta::read(message) else {
            self.events.take(message, now);
            let event = self.events.next_event()?;
            return Some(self.errors.redact_event(event));
        };
        let turn_taking = &mut self.events.turn_taking;
        if !turn_taking.is_audible() {
            return None;
        }
        turn_taking.playback.add(&delta.item_id, delta.content_index, delta.delta.len() / 4 * 3, now);
        Some(LiveEvent::Audio(Audio::Base64(delta.delta)))
    }

    fn send(&mut self, input: LiveInput<'_>) {
        match &input {
            LiveInput::Audio(audio) if is_empty(audio) => {}
            LiveInput::Audio(audio) => {
                let pcm = self.resampler.take(&samples(audio));
                messages::send_audio(&mut self.socket, &pcm);
            }
            input => {
                self.events.turn_taking.send(input, Instant::now());
                self.send_queued();
            }
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        self.send_queued();
        self.socket.poll_flush(context)
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.socket.close())
    }
}

/// The hot path of what arrives: a piece of audio, left where it lies.
#[derive(Deserialize)]
struct AudioDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    item_id: Cow<'a, str>,
    #[serde(default)]
    content_index: u64,
    #[serde(borrow)]
    delta: Cow<'a, str>,
}

impl<'a> AudioDelta<'a> {
    /// Reads a message that is one, and sound; every other one is left to the parser.
    fn read(message: &'a [u8]) -> Option<Self> {
        let begin = &message[..message.len().min(128)];
        memmem::find(begin, b"response.output_audio.delta")?;
        let delta: Self = serde_json::from_slice(message).ok()?;
        let is_audio = delta.kind == "response.output_audio.delta"
            && STANDARD.check(delta.delta.as_bytes()).is_ok()
            && holds_whole_samples(&delta.delta);
        is_audio.then_some(delta)
    }
}
