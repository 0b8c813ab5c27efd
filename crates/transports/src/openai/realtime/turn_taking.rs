//! Turn-taking: when a response is requested, cancelled or truncated. At most one response is active; the provider answers
//! speech by itself, everything else only on request, and refuses a second response while one is active.

use std::time::Duration;

use quarterdeck_contracts::{LiveInput, LiveResult, ModelCall};
use serde_json::Value;
use tokio::time::Instant;

use super::messages::{self, Role};
use super::playback::Playback;

/// How long a response may take to begin after an error that may or may not concern it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// It does no I/O: what is to be sent is appended to `out`.
#[derive(Debug, Default)]
pub(super) struct TurnTaking {
    response: Response,
    /// How many responses were requested.
    requests: u64,
    /// A response is to be requested once the active one has ended.
    needs_response: bool,
    /// A result of the batch that is being delivered is to be spoken about.
    batch_needs_response: bool,
    is_user_speaking: bool,
    /// The rest of the active response is not emitted.
    is_suppressed: bool,
    /// Nor is the requested one, once it starts.
    suppress_next: bool,
    /// Since when it is in doubt that the requested response will start.
    in_doubt_since: Option<Instant>,
    pub(super) playback: Playback,
    pub(super) out: Vec<Value>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Response {
    #[default]
    None,
    Requested,
    /// By its id.
    Active(String),
}

/// What is interrupted when the user starts to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The active response, whose end will be reported.
    Response,
    /// Only the playback of one that has ended.
    Playback,
}

impl TurnTaking {
    /// Takes any input but audio.
    pub(super) fn send(&mut self, input: &LiveInput<'_>, now: Instant) {
        match input {
            LiveInput::AudioEnded if self.is_user_speaking => {
                // The silence that would end the speech will not arrive.
                self.is_user_speaking = false;
                self.out.push(messages::commit());
                self.request_response();
            }
            LiveInput::Text(text) => {
                self.out.push(messages::message_item(Role::User, text));
                self.request_response();
            }
            LiveInput::Note { text, asks } => {
                self.out.push(messages::message_item(Role::System, text));
                if *asks {
                    self.request_response();
                }
            }
            LiveInput::Filler { request, .. } => {
                self.out.push(messages::message_item(Role::System, request));
                self.request_response();
            }
            LiveInput::Result(result) => self.answer(result),
            LiveInput::Interrupt { heard } => self.interrupt(*heard, now),
            _ => {}
        }
    }

    /// Requests a response, now or once the active one has ended. Speech is answered without a request.
    pub(super) fn request_response(&mut self) {
        if self.is_user_speaking {
            return;
        }
        if self.response == Response::None {
            self.response = Response::Requested;
            self.requests += 1;
            self.out.push(messages::response_create(&self.request_id()));
        } else {
            self.needs_response = true;
        }
    }

    /// The event id of the latest request.
    fn request_id(&self) -> String {
        format!("ask_{}", self.requests)
    }

    /// Whether output that arrives now is emitted.
    pub(super) fn is_audible(&self) -> bool {
        !self.is_suppressed
    }

    pub(super) fn is_response_requested(&self) -> bool {
        self.response == Response::Requested
    }

    pub(super) fn response_started(&mut self, id: &str, is_new_answer: bool) {
        self.response = Response::Active(id.to_owned());
        self.in_doubt_since = None;
        self.is_suppressed = std::mem::take(&mut self.suppress_next);
        if self.is_suppressed {
            self.out.push(messages::cancel(id));
        }
        if is_new_answer {
            self.playback.begin();
        }
        self.playback.response_started();
    }

    pub(super) fn response_ended(&mut self) {
        self.response = Response::None;
        self.is_suppressed = false;
        if std::mem::take(&mut self.needs_response) {
            self.request_response();
        }
    }

    /// Returns what that interrupts, if anything.
    pub(super) fn user_started_speaking(&mut self, now: Instant) -> Option<Interruption> {
        self.is_user_speaking = true;
        let interrupted = match &self.response {
            Response::Active(_) => Interruption::Response,
            _ if !self.playback.is_played(now) => Interruption::Playback,
            _ => return None,
        };
        self.is_suppressed |= interrupted == Interruption::Response;
        self.truncate(None, now);
        Some(interrupted)
    }

    /// Answers the calls of an interrupted response, which are not executed.
    pub(super) fn cancel_calls(&mut self, calls: &[ModelCall]) {
        let ids = calls.iter().filter_map(|call| call.id.as_deref());
        self.out.extend(ids.map(messages::cancelled_output));
    }

    pub(super) fn user_stopped_speaking(&mut self) {
        self.is_user_speaking = false;
    }

    /// The provider refused an event. Returns whether that means that no response will start.
    pub(super) fn refused(&mut self, code: &str, event: Option<&str>, now: Instant) -> bool {
        match (code, &self.response) {
            // One is active that was not announced yet; the next one is requested when it has ended.
            ("conversation_already_has_active_response", _) => {
                self.needs_response = true;
                if self.response == Response::Requested {
                    self.response = Response::Active(String::new());
                }
                false
            }
            (_, Response::Requested) if event == Some(&self.request_id()) => self.abandon_response(),
            // The error names no event. The response may start all the same, or the connection may be about to end.
            (_, Response::Requested) if event.is_none() => {
                self.in_doubt_since.get_or_insert(now);
                false
            }
            _ => false,
        }
    }

    /// Until when a response that is in doubt may start.
    pub(super) fn response_deadline(&self) -> Option<Instant> {
        self.in_doubt_since.map(|since| since + RESPONSE_TIMEOUT)
    }

    /// The requested response does not start. Returns whether no other was requested instead.
    pub(super) fn abandon_response(&mut self) -> bool {
        (self.response, self.suppress_next, self.in_doubt_since) = (Response::None, false, None);
        if std::mem::take(&mut self.needs_response) {
            self.request_response();
        }
        self.response == Response::None
    }

    fn answer(&mut self, result: &LiveResult<'_>) {
        self.out.push(messages::function_output(result));
        self.batch_needs_response |= !result.is_silent;
        if result.is_last && std::mem::take(&mut self.batch_needs_response) {
            self.request_response();
        }
    }

    fn interrupt(&mut self, heard: Option<Duration>, now: Instant) {
        // Earlier input needs no response any more; later input requests one again.
        self.needs_response = false;
        match &self.response {
            Response::Active(id) if !self.is_suppressed => {
                self.out.push(messages::cancel(id));
                self.is_suppressed = true;
            }
            Response::Requested => self.suppress_next = true,
            _ => {}
        }
        self.truncate(heard, now);
    }

    /// Without it, the provider takes all of an answer for heard.
    fn truncate(&mut self, heard: Option<Duration>, now: Instant) {
        if let Some(at) = self.playback.truncate(heard, now) {
            self.out.push(messages::truncate(&at.item, at.content, at.milliseconds));
        }
    }
}
