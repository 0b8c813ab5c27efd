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
use super::reading::{Opened, ServerEvents};
use crate::live::{Arrived, Line, Place, Resampler, Troubles, holds_whole_samples, is_empty, samples};

/// A session ends after an hour, without a warning, so we give one.
const WARN_AFTER: Duration = Duration::from_secs(55 * 60);
const WARNED_OF: Duration = Duration::from_secs(5 * 60);
/// What the person says, and what the provider wants of it.
const RATES: (u32, u32) = (16_000, 24_000);

pub(super) struct Connection {
    line: Line,
    troubles: Troubles,
    events: ServerEvents,
    resampler: Resampler,
    /// Until the warning.
    timer: Option<Pin<Box<Sleep>>>,
    /// Until a response that is in doubt is given up.
    doubt: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    /// Opens a conversation. To be called within a time limit.
    pub(super) async fn open(
        place: Place,
        update: Value,
        history: Vec<Value>,
        asks: bool,
    ) -> Result<Self, LiveError> {
        let line = place.reach().await?;
        let (from, to) = RATES;
        let mut connection = Self {
            troubles: line.troubles.clone(),
            line,
            events: ServerEvents::default(),
            resampler: Resampler::new(from, to),
            timer: Some(Box::pin(sleep(WARN_AFTER))),
            doubt: None,
        };
        connection.wait_until(Opened::Created).await?;
        connection.line.send(&update);
        connection.line.flush().await?;
        connection.wait_until(Opened::Updated).await?;
        for message in &history {
            connection.line.send(message);
        }
        if asks {
            connection.events.exchange.ask();
        }
        connection.send_out();
        connection.line.flush().await?;
        Ok(connection)
    }

    async fn wait_until(&mut self, opened: Opened) -> Result<(), LiveError> {
        while self.events.opened != opened {
            if let Opened::Refused(why) = &self.events.opened {
                return Err(self.troubles.refused(why));
            }
            match self.line.next() {
                Some(Arrived::Message(message)) => self.events.take(message, Instant::now()),
                Some(Arrived::Nothing) => {}
                None => self.line.fill().await?,
            }
        }
        Ok(())
    }

    /// Puts in line what the conversation wants sent.
    fn send_out(&mut self) {
        for message in self.events.exchange.out.drain(..) {
            self.line.send(&message);
        }
    }

    /// Rings once.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> bool {
        let rings = self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if rings {
            self.timer = None;
        }
        rings
    }

    /// Gives up a response that was in doubt for too long.
    fn poll_doubt(&mut self, context: &mut Context<'_>) {
        let Some(until) = self.events.exchange.doubted_until() else {
            self.doubt = None;
            return;
        };
        let timer = self.doubt.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.as_mut().poll(context).is_ready() {
            self.doubt = None;
            self.events.give_up();
        }
    }
}

impl LiveConnection for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if self.events.is_empty() && self.poll_timer(context) {
            self.events.push(LiveEvent::GoingAway { left: Some(WARNED_OF) });
        }
        self.poll_doubt(context);
        if !self.events.is_empty() {
            return Poll::Ready(Ok(()));
        }
        // What came may ask for something that nobody else would send.
        self.send_out();
        self.line.poll_fill(context)
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        if let Some(event) = self.events.next_event() {
            return Some(self.troubles.blotted(event));
        }
        let Arrived::Message(message) = self.line.next()? else { return None };
        let now = Instant::now();
        let Some(delta) = AudioDelta::read(message) else {
            self.events.take(message, now);
            let event = self.events.next_event()?;
            return Some(self.troubles.blotted(event));
        };
        let exchange = &mut self.events.exchange;
        if !exchange.is_audible() {
            return None;
        }
        exchange.spoken.add(&delta.item_id, delta.content_index, delta.delta.len() / 4 * 3, now);
        Some(LiveEvent::Audio(Audio::Base64(delta.delta)))
    }

    fn send(&mut self, input: LiveInput<'_>) {
        match &input {
            LiveInput::Audio(audio) if is_empty(audio) => {}
            LiveInput::Audio(audio) => {
                let pcm = self.resampler.take(&samples(audio));
                messages::send_audio(&mut self.line, &pcm);
            }
            input => {
                self.events.exchange.send(input, Instant::now());
                self.send_out();
            }
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        self.send_out();
        self.line.poll_flush(context)
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.line.close())
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
