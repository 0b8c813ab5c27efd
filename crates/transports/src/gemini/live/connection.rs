//! An open conversation with Gemini Live.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use quarterdeck_contracts::{Audio, LiveConnection, LiveError, LiveEvent, LiveInput};
use serde_json::Value;

use super::profile::{Profile, WhileCalling};
use super::reading::ServerMessages;
use super::{frames, scan};
use crate::live::{Arrived, Line, Place, is_empty};

/// How many calls are remembered that wait for their results.
const MOST_PENDING: usize = 256;
/// How many texts wait for results before they are sent all the same.
const MOST_HELD: usize = 32;

pub(super) struct Connection {
    line: Line,
    talk: Talk,
    profile: Profile,
    /// Whether we say when the person speaks, and whether we have.
    is_manual: bool,
    is_speaking: bool,
}

/// What is known of the conversation.
#[derive(Default)]
struct Talk {
    messages: ServerMessages,
    /// Audio has come, and its end has not.
    is_generating: bool,
    /// The person wants silence until the answer ends.
    is_muted: bool,
    /// Ids of calls without a result, or their names.
    pending: Vec<String>,
    /// What waits until there is none.
    held: VecDeque<Value>,
}

impl Connection {
    /// Opens a conversation. To be called within a time limit.
    pub(super) async fn open(
        place: Place,
        setup: Value,
        history: Vec<Value>,
        profile: Profile,
        is_manual: bool,
    ) -> Result<Self, LiveError> {
        let mut line = place.reach().await?;
        let mut talk = Talk::default();
        line.send(&setup);
        line.flush().await?;
        while !talk.messages.is_ready() {
            match line.next() {
                Some(Arrived::Message(message)) => talk.messages.take(message),
                Some(Arrived::Nothing) => {}
                None => line.fill().await?,
            }
        }
        for message in &history {
            line.send(message);
        }
        line.flush().await?;
        Ok(Self { line, talk, profile, is_manual, is_speaking: false })
    }

    /// Sends text, or keeps it until the model listens.
    fn send_text(&mut self, message: Value) {
        let waits = self.profile.while_calling == WhileCalling::Waits && !self.talk.pending.is_empty();
        if waits && self.talk.held.len() < MOST_HELD {
            self.talk.held.push_back(message);
        } else {
            self.line.send(&message);
        }
    }

    fn send_held(&mut self) {
        if self.talk.pending.is_empty() {
            for message in self.talk.held.drain(..) {
                self.line.send(&message);
            }
        }
    }

    fn set_speaking(&mut self, is_speaking: bool) {
        if self.is_manual && self.is_speaking != is_speaking {
            self.is_speaking = is_speaking;
            self.line.send(&if is_speaking { frames::activity_start() } else { frames::activity_end() });
        }
    }

    fn fall_silent(&mut self) {
        // Nothing to be silent about: the next answer must be heard.
        if !self.talk.is_generating {
            return;
        }
        self.talk.is_muted = true;
        if let Some(message) = frames::silence(&self.profile) {
            self.line.send(&message);
        }
    }
}

impl Talk {
    /// The next event that somebody wants.
    fn next_event(&mut self) -> Option<LiveEvent<'static>> {
        while let Some(event) = self.messages.next_event() {
            if self.follow(&event) {
                return Some(event);
            }
        }
        None
    }

    /// Keeps up with an event, and says whether somebody wants it.
    fn follow(&mut self, event: &LiveEvent<'_>) -> bool {
        match event {
            LiveEvent::Audio(_) => {
                self.is_generating = true;
                self.messages.has_answered = true;
                return !self.is_muted;
            }
            LiveEvent::Interrupted { .. }
            | LiveEvent::GenerationComplete
            | LiveEvent::TurnComplete { .. } => {
                (self.is_generating, self.is_muted) = (false, false);
            }
            LiveEvent::Calls(calls) => {
                let ids = calls.iter().map(|call| call.id.as_ref().unwrap_or(&call.name).clone());
                let room = MOST_PENDING - self.pending.len();
                self.pending.extend(ids.take(room));
            }
            LiveEvent::CallsCancelled(ids) => self.pending.retain(|pending| !ids.contains(pending)),
            _ => {}
        }
        true
    }

    fn answered(&mut self, id: &str) {
        if let Some(place) = self.pending.iter().position(|pending| pending == id) {
            self.pending.swap_remove(place);
        }
    }
}

impl LiveConnection for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if !self.talk.messages.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.send_held();
        self.line.poll_fill(context)
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        if let Some(event) = self.talk.next_event() {
            return Some(event);
        }
        let Arrived::Message(message) = self.line.next()? else { return None };
        let Some(data) = scan::scan(message) else {
            self.talk.messages.take(message);
            return self.talk.next_event();
        };
        let event = LiveEvent::Audio(Audio::Base64(Cow::Borrowed(data)));
        self.talk.follow(&event).then_some(event)
    }

    fn send(&mut self, input: LiveInput<'_>) {
        match input {
            LiveInput::Audio(audio) if is_empty(&audio) => {}
            LiveInput::Audio(audio) => {
                self.set_speaking(true);
                frames::send_audio(&mut self.line, &audio);
            }
            LiveInput::AudioEnded if self.is_manual => self.set_speaking(false),
            LiveInput::AudioEnded => self.line.send(&frames::audio_ended()),
            LiveInput::Text(text) => self.send_text(frames::text(&self.profile, text, true)),
            LiveInput::Note { text, asks } => self.send_text(frames::text(&self.profile, text, asks)),
            LiveInput::Result(result) => {
                self.line.send(&frames::result(&self.profile, &result));
                self.talk.answered(result.id.unwrap_or(result.name));
            }
            LiveInput::Interrupt { .. } => self.fall_silent(),
            // Something newer than this client.
            _ => {}
        }
        // What was held back goes once nothing is pending, whichever way that came about.
        self.send_held();
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        self.send_held();
        self.line.poll_flush(context)
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.line.close())
    }
}
