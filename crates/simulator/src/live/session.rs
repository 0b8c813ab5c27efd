//! One connection after its setup: what comes in, what goes out, and when.
//!
//! It does no I/O and reads no clock: it is told what has come and what time it is, and whoever owns it sends what it
//! has put out.

mod beginning;
mod calls;
mod ending;
mod hearing;
mod replying;
mod saying;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::ModelReply;
use serde_json::Value;
use tokio::time::Instant;

use self::beginning::Input;
use self::calls::Calls;
use self::turn::Turn;
use super::conversation::Conversation;
use super::desk::{Desk, Mind};
use super::ears::Ears;
use super::scenario::{Ending, Interruption, Pace};
use super::server_frame;
use super::setup::Setup;

/// How many frames may wait for their time.
const MOST_LATER: usize = 1_024;
/// How many inputs may wait for a turn to end.
const MOST_WAITING: usize = 64;

/// What goes out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Out {
    /// A frame, usually of JSON.
    Frame(Vec<u8>),
    /// The end, with a close frame.
    Close(u16, String),
    /// The end, without a word.
    Abort,
}

/// Something that takes time and is not ours to do.
pub(super) enum Errand {
    /// Ask the chat model.
    Ask(quarterdeck_contracts::ChatRequest),
    /// Make words heard.
    Speak(String),
}

/// What came of it.
pub(super) enum Done {
    Reply(Result<ModelReply, String>),
    Samples(Option<Vec<i16>>),
}

/// A connection's state.
pub(super) struct Session {
    desk: Arc<Desk>,
    number: usize,
    setup: Setup,
    conversation: Conversation,
    pace: Pace,
    ears: Ears,
    /// How long the person has spoken in the speech that was heard last.
    spoke_for: Duration,
    calls: Calls,
    /// How many calls the last message with calls had.
    calls_of_step: usize,
    /// Whether they were answered while the model was speaking of something else.
    answers_are_due: bool,
    turn: Option<Turn>,
    /// What came while nothing may be interrupted.
    waiting: VecDeque<Input>,
    /// Until when the setup takes.
    opens_at: Option<Instant>,
    out: VecDeque<Out>,
    later: Vec<(Instant, Out)>,
    errand: Option<Errand>,
    is_over: bool,
}

impl Session {
    pub(super) fn new(desk: Arc<Desk>, number: usize, setup: Setup, conversation: Conversation) -> Self {
        let scenario = desk.scenario();
        let pace = scenario.map(|it| it.pace).unwrap_or_default();
        let silence = scenario.and_then(|it| it.silence).or(setup.silence);
        Self {
            number,
            setup,
            conversation,
            pace,
            ears: Ears::new(silence),
            spoke_for: Duration::ZERO,
            calls: Calls::default(),
            calls_of_step: 0,
            answers_are_due: false,
            turn: None,
            waiting: VecDeque::new(),
            opens_at: None,
            out: VecDeque::new(),
            later: Vec::new(),
            errand: None,
            is_over: false,
            desk,
        }
    }

    /// Answers the setup, then or later.
    pub(super) fn open_at(&mut self, at: Instant) {
        self.opens_at = Some(at);
    }

    /// What is to be sent next.
    pub(super) fn take_out(&mut self) -> Option<Out> {
        self.out.pop_front()
    }

    /// What is to be done elsewhere. It is asked for once.
    pub(super) fn take_errand(&mut self) -> Option<Errand> {
        self.errand.take()
    }

    /// Does everything that is due.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.opens_at.is_some_and(|at| at <= now) {
            self.opens_at = None;
            self.send(&server_frame::setup_complete(self.number));
            self.begin_by_itself(now);
        }
        self.later.sort_by_key(|(due, _)| *due);
        while !self.is_over && self.later.first().is_some_and(|(due, _)| *due <= now) {
            match self.later.remove(0).1 {
                Out::Frame(bytes) => self.out.push_back(Out::Frame(bytes)),
                end => self.end(end),
            }
        }
        while !self.is_over && self.step(now) {}
    }

    /// When something is due next.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let later = self.later.iter().map(|(due, _)| *due);
        later.chain(self.opens_at).chain(self.turn.as_ref().and_then(Turn::wake_at)).min()
    }

    /// The client has left, or is lost.
    pub(super) fn was_left(&mut self) {
        if !self.is_over {
            self.is_over = true;
            self.complain_about_open_calls();
        }
    }

    fn may_interrupt(&self) -> bool {
        let allows = |turn: &Turn| turn.interruption != Interruption::Ignore;
        self.setup.may_be_interrupted && self.turn.as_ref().is_some_and(allows)
    }

    /// Goes on with a handle from here, if the client wants that and nothing is going on.
    fn offer_handle(&mut self, now: Instant) {
        if self.setup.resumption.is_none() || self.turn.is_some() || self.calls.are_open() {
            return;
        }
        let handle = self.desk.books().handle(self.conversation.clone(), now);
        self.send(&server_frame::resumption(Some(&handle)));
    }

    fn plays(&self) -> bool {
        matches!(self.desk.mind, Mind::Plays(_))
    }

    fn send(&mut self, frame: &Value) {
        self.send_bytes(frame.to_string().into_bytes());
    }

    fn send_bytes(&mut self, bytes: Vec<u8>) {
        if !self.is_over {
            self.out.push_back(Out::Frame(bytes));
        }
    }

    fn send_later(&mut self, due: Instant, out: Out) {
        if self.later.len() < MOST_LATER {
            self.later.push((due, out));
        }
    }

    fn fault(&self, what: &str) {
        self.desk.books().report.fault(self.number, what);
    }

    /// Closes the connection for something that the client must not do.
    fn refuse(&mut self, why: &str) {
        self.fault(why);
        self.end(Out::Close(1007, why.to_owned()));
    }

    /// Ends the connection after what has been put out.
    fn end(&mut self, out: Out) {
        if !self.is_over {
            self.is_over = true;
            self.out.push_back(out);
        }
    }
}

impl From<Ending> for Out {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Abort => Self::Abort,
            Ending::Close(code, reason) => Self::Close(code, reason),
        }
    }
}
