//! Who may speak, and what the provider has to be told for it. A response runs or it does not; nothing answers by itself
//! to what we add, and a second response while one runs is refused.

use std::time::Duration;

use quarterdeck_contracts::{LiveInput, LiveResult, ModelCall};
use serde_json::Value;
use tokio::time::Instant;

use super::messages::{self, Role};
use super::spoken::Spoken;

/// How long a response may take to begin after an error that may or may not concern it.
const DOUBT: Duration = Duration::from_secs(5);

/// The state of a conversation. It does no I/O: what is to be sent is put at the end of `out`.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    response: Response,
    /// How many were asked for.
    asked: u64,
    /// Something was added that no response has answered.
    is_unanswered: bool,
    /// Somebody wants to hear of a result of the batch that is being delivered.
    batch_asks: bool,
    is_person_speaking: bool,
    /// The rest of the response that runs is not to be heard.
    is_cut: bool,
    /// Nor is the one that was asked for, once it begins.
    cuts_next: bool,
    /// Since when it is in doubt that the response that was asked for will come.
    doubted: Option<Instant>,
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

/// What a person who begins to speak cuts off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutOff {
    /// A response that runs, whose end will be told.
    Response,
    /// Only what is still played of one that is over.
    Playback,
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
            self.asked += 1;
            self.out.push(messages::respond(&self.ask_id()));
        } else {
            self.is_unanswered = true;
        }
    }

    /// What the latest request for a response is called.
    fn ask_id(&self) -> String {
        format!("ask_{}", self.asked)
    }

    /// Whether what comes now of an answer is to be heard.
    pub(super) fn is_audible(&self) -> bool {
        !self.is_cut
    }

    /// Whether a response was asked for that has not begun.
    pub(super) fn is_asked(&self) -> bool {
        self.response == Response::Asked
    }

    pub(super) fn response_began(&mut self, id: &str, is_new_answer: bool) {
        self.response = Response::Runs(id.to_owned());
        self.doubted = None;
        self.is_cut = std::mem::take(&mut self.cuts_next);
        if self.is_cut {
            self.out.push(messages::cancel(id));
        }
        if is_new_answer {
            self.spoken.begin();
        }
        self.spoken.response_began();
    }

    pub(super) fn response_ended(&mut self) {
        self.response = Response::None;
        self.is_cut = false;
        if std::mem::take(&mut self.is_unanswered) {
            self.ask();
        }
    }

    /// The person has begun to speak. What that cuts off, if anything.
    pub(super) fn person_speaks(&mut self, now: Instant) -> Option<CutOff> {
        self.is_person_speaking = true;
        let what = match &self.response {
            Response::Runs(_) => CutOff::Response,
            _ if !self.spoken.is_heard(now) => CutOff::Playback,
            _ => return None,
        };
        self.is_cut |= what == CutOff::Response;
        self.truncate(None, now);
        Some(what)
    }

    /// Calls of a response that was cut off: whoever made them gets a word, and nobody carries them out.
    pub(super) fn take_back(&mut self, calls: &[ModelCall]) {
        let ids = calls.iter().filter_map(|call| call.id.as_deref());
        self.out.extend(ids.map(messages::taken_back));
    }

    pub(super) fn person_is_silent(&mut self) {
        self.is_person_speaking = false;
    }

    /// What we sent was refused. Whether that means that no response comes.
    pub(super) fn refused(&mut self, code: &str, event: Option<&str>, now: Instant) -> bool {
        match (code, &self.response) {
            // One runs that we have not heard of yet; the next one is asked for when it is done.
            ("conversation_already_has_active_response", _) => {
                self.is_unanswered = true;
                if self.response == Response::Asked {
                    self.response = Response::Runs(String::new());
                }
                false
            }
            (_, Response::Asked) if event == Some(&self.ask_id()) => self.give_up(),
            // It is nobody's in particular. The response may come all the same, or the connection may be about to go.
            (_, Response::Asked) if event.is_none() => {
                self.doubted.get_or_insert(now);
                false
            }
            _ => false,
        }
    }

    /// Until when a response that is in doubt may still come.
    pub(super) fn doubted_until(&self) -> Option<Instant> {
        self.doubted.map(|since| since + DOUBT)
    }

    /// The response that was asked for does not come. Whether no other is asked for instead.
    pub(super) fn give_up(&mut self) -> bool {
        (self.response, self.cuts_next, self.doubted) = (Response::None, false, None);
        if std::mem::take(&mut self.is_unanswered) {
            self.ask();
        }
        self.response == Response::None
    }

    fn answer(&mut self, result: &LiveResult<'_>) {
        self.out.push(messages::output(result));
        self.batch_asks |= !result.is_silent;
        if result.is_last && std::mem::take(&mut self.batch_asks) {
            self.ask();
        }
    }

    fn interrupt(&mut self, heard: Option<Duration>, now: Instant) {
        // What waited for an answer does not want one any more; what comes after this asks again.
        self.is_unanswered = false;
        match &self.response {
            Response::Runs(id) if !self.is_cut => {
                self.out.push(messages::cancel(id));
                self.is_cut = true;
            }
            Response::Asked => self.cuts_next = true,
            _ => {}
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
