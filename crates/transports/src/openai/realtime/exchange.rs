//! Who may speak, and what the provider has to be told for it. A response runs or it does not; nothing answers by itself
//! to what we add, and a second response while one runs is refused.

use std::time::Duration;

use quarterdeck_contracts::{LiveInput, LiveResult};
use serde_json::Value;
use tokio::time::Instant;

use super::messages::{self, Role};
use super::spoken::Spoken;

/// The state of a conversation. It does no I/O: what is to be sent is put at the end of `out`.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    response: Response,
    /// Something was added that no response has answered.
    is_unanswered: bool,
    /// Somebody wants to hear of a result of the batch that is being delivered.
    batch_asks: bool,
    is_person_speaking: bool,
    /// The rest of the response that runs is not to be heard.
    is_cut: bool,
    pub(super) spoken: Spoken,
    pub(super) out: Vec<Value>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Response {
    #[default]
    None,
    /// We have asked for one.
    Asked,
    /// It runs, under this id.
    Runs(String),
}

impl Exchange {
    /// Puts something in line that is not audio.
    pub(super) fn send(&mut self, input: &LiveInput<'_>, now: Instant) {
        match input {
            LiveInput::AudioEnded if self.is_person_speaking => {
                // The silence that would end what they say does not come any more.
                self.is_person_speaking = false;
                self.out.push(messages::commit());
                self.ask();
            }
            LiveInput::Text(text) => {
                self.out.push(messages::words(Role::Person, text));
                self.ask();
            }
            LiveInput::Note { text, asks } => {
                self.out.push(messages::words(Role::System, text));
                if *asks {
                    self.ask();
                }
            }
            LiveInput::Result(result) => self.answer(result),
            LiveInput::Interrupt { heard } => self.interrupt(*heard, now),
            _ => {}
        }
    }

    /// Asks for a response, now or once the one that runs is done. A person who speaks asks anyway.
    pub(super) fn ask(&mut self) {
        if self.is_person_speaking {
            return;
        }
        if self.response == Response::None {
            self.response = Response::Asked;
            self.out.push(messages::respond());
        } else {
            self.is_unanswered = true;
        }
    }

    /// Whether audio that comes now is to be heard.
    pub(super) fn is_audible(&self) -> bool {
        !self.is_cut
    }

    /// Whether a response was asked for that has not begun.
    pub(super) fn is_asked(&self) -> bool {
        self.response == Response::Asked
    }

    pub(super) fn response_began(&mut self, id: &str, is_new_answer: bool) {
        self.response = Response::Runs(id.to_owned());
        self.is_cut = false;
        if is_new_answer {
            self.spoken.begin();
        }
    }

    pub(super) fn response_ended(&mut self) {
        self.response = Response::None;
        self.is_cut = false;
        if std::mem::take(&mut self.is_unanswered) {
            self.ask();
        }
    }

    /// The person has begun to speak. Whether that cuts somebody off.
    pub(super) fn person_speaks(&mut self, now: Instant) -> bool {
        self.is_person_speaking = true;
        let is_running = matches!(self.response, Response::Runs(_));
        let cuts_off = is_running || !self.spoken.is_heard(now);
        self.is_cut |= is_running;
        if cuts_off {
            self.truncate(None, now);
        }
        cuts_off
    }

    pub(super) fn person_is_silent(&mut self) {
        self.is_person_speaking = false;
    }

    /// What we sent was refused.
    pub(super) fn refused(&mut self, code: &str) {
        match (code, &self.response) {
            // One runs that we have not heard of yet; the next one is asked for when it is done.
            ("conversation_already_has_active_response", _) => {
                self.is_unanswered = true;
                if self.response == Response::Asked {
                    self.response = Response::Runs(String::new());
                }
            }
            (_, Response::Asked) => self.response = Response::None,
            _ => {}
        }
    }

    fn answer(&mut self, result: &LiveResult<'_>) {
        self.out.push(messages::output(result));
        self.batch_asks |= !result.is_silent;
        if result.is_last && std::mem::take(&mut self.batch_asks) {
            self.ask();
        }
    }

    fn interrupt(&mut self, heard: Option<Duration>, now: Instant) {
        if let Response::Runs(id) = &self.response
            && !self.is_cut
        {
            self.out.push(messages::cancel(id));
            self.is_cut = true;
        }
        self.truncate(heard, now);
    }

    /// The provider believes that all of an answer was heard, unless it is told.
    fn truncate(&mut self, heard: Option<Duration>, now: Instant) {
        if let Some(cut) = self.spoken.cut(heard, now) {
            self.out.push(messages::truncate(&cut.item, cut.content, cut.milliseconds));
        }
    }
}
