//! An open conversation with Gemini Live.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use quarterdeck_contracts::{Audio, LiveConnection, LiveError, LiveEvent, LiveInput};
use serde_json::Value;

use super::profile::{Profile, TextDuringCalls};
use super::server_messages::ServerMessages;
use super::{frames, scan};
use crate::live::{LiveEndpoint, ProviderSocket, Received, is_empty};

/// Calls without a result that are remembered.
const MAX_PENDING_CALLS: usize = 256;
/// Further texts are sent although a result is pending.
const MAX_HELD_TEXTS: usize = 32;

pub(super) struct Connection {
    socket: ProviderSocket,
    state: ConversationState,
    profile: Profile,
    /// Whether the client sends `activityStart` and `activityEnd`, and whether the last was a start.
    is_manual: bool,
    is_speaking: bool,
}

#[derive(Default)]
struct ConversationState {
    messages: ServerMessages,
    /// Audio has arrived, and its end has not.
    is_generating: bool,
    /// The rest of the answer is suppressed.
    is_muted: bool,
    /// Ids of calls without a result, or their names.
    pending: Vec<String>,
    /// Texts held back until there is none.
    held: VecDeque<Value>,
}

impl Connection {
    /// Opens a conversation. To be called within a time limit.
    pub(super) async fn open(
        endpoint: LiveEndpoint,
        setup: Value,
        history: Vec<Value>,
        profile: Profile,
        is_manual: bool,
    ) -> Result<Self, LiveError> {
        let mut socket = endpoint.connect().await?;
        let mut state = ConversationState::default();
        socket.send(&setup);
        socket.flush().await?;
        while !state.messages.is_ready() {
            match socket.next() {
                Some(Received::Message(message)) => state.messages.take(message),
                Some(Received::Control) => {}
                None => socket.fill().await?,
            }
        }
        for message in &history {
            socket.send(message);
        }
        socket.flush().await?;
        Ok(Self { socket, state, profile, is_manual, is_speaking: false })
    }

    /// Sends text, or holds it back until the results are there.
    fn send_text(&mut self, message: Value) {
        let is_held =
            self.profile.text_during_calls == TextDuringCalls::Hold && !self.state.pending.is_empty();
        if is_held && self.state.held.len() < MAX_HELD_TEXTS {
            self.state.held.push_back(message);
        } else {
            self.socket.send(&message);
        }
    }

    fn send_held(&mut self) {
        if self.state.pending.is_empty() {
            for message in self.state.held.drain(..) {
                self.socket.send(&message);
            }
        }
    }

    fn set_speaking(&mut self, is_speaking: bool) {
        if self.is_manual && self.is_speaking != is_speaking {
            self.is_speaking = is_speaking;
            self.socket.send(&if is_speaking { frames::activity_start() } else { frames::activity_end() });
        }
    }

    fn interrupt(&mut self) {
        // There is nothing to suppress, and the next answer must be heard.
        if !self.state.is_generating {
            return;
        }
        self.state.is_muted = true;
        if let Some(message) = frames::interruption(&self.profile) {
            self.socket.send(&message);
        }
    }
}

impl ConversationState {
    /// The next event to emit.
    fn next_event(&mut self) -> Option<LiveEvent<'static>> {
        while let Some(event) = self.messages.next_event() {
            if self.track(&event) {
                return Some(event);
            }
        }
        None
    }

    /// Updates the state by an event. Returns whether it is emitted.
    fn track(&mut self, event: &LiveEvent<'_>) -> bool {
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
                let free = MAX_PENDING_CALLS - self.pending.len();
                self.pending.extend(ids.take(free));
            }
            LiveEvent::CallsCancelled(ids) => self.pending.retain(|pending| !ids.contains(pending)),
            _ => {}
        }
        true
    }

    fn mark_answered(&mut self, id: &str) {
        if let Some(place) = self.pending.iter().position(|pending| pending == id) {
            self.pending.swap_remove(place);
        }
    }
}

impl LiveConnection for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if !self.state.messages.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.send_held();
        self.socket.poll_fill(context)
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        if let Some(event) = self.state.next_event() {
            return Some(event);
        }
        let Received::Message(message) = self.socket.next()? else { return None };
        let Some(data) = scan::scan(message) else {
            self.state.messages.take(message);
            return self.state.next_event();
        };
        let event = LiveEvent::Audio(Audio::Base64(Cow::Borrowed(data)));
        self.state.track(&event).then_some(event)
    }

    fn send(&mut self, input: LiveInput<'_>) {
        match input {
            LiveInput::Audio(audio) if is_empty(&audio) => {}
            LiveInput::Audio(audio) => {
                self.set_speaking(true);
                frames::send_audio(&mut self.socket, &audio);
            }
            LiveInput::AudioEnded if self.is_manual => self.set_speaking(false),
            LiveInput::AudioEnded => self.socket.send(&frames::audio_ended()),
            LiveInput::Text(text) => self.send_text(frames::text(&self.profile, text, true)),
            LiveInput::Note { text, asks } => self.send_text(frames::text(&self.profile, text, asks)),
            LiveInput::Filler { request, .. } => self.send_text(frames::text(&self.profile, request, true)),
            LiveInput::Result(result) => {
                self.socket.send(&frames::result(&self.profile, &result));
                self.state.mark_answered(result.id.unwrap_or(result.name));
            }
            LiveInput::Interrupt { .. } => self.interrupt(),
            // Inputs that this client does not know.
            _ => {}
        }
        // A result or a cancellation may have been the last pending one.
        self.send_held();
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        self.send_held();
        self.socket.poll_flush(context)
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.socket.close())
    }
}
