//! One connection after its setup, as a state machine.
//!
//! It does no I/O and reads no clock: the connection passes in frames and the time, and sends the outputs.

mod calls;
mod input;
mod model_reply;
mod turn;
mod turn_end;
mod turn_start;
mod utterance;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::ModelReply;
use serde_json::Value;
use tokio::time::Instant;

use self::calls::Calls;
use self::turn::Turn;
use self::turn_start::Input;
use super::conversation::Conversation;
use super::scenario::{Ending, Interruption, Pace};
use super::server_frame;
use super::setup::Setup;
use super::simulation::{ReplySource, Simulation};
use crate::speech_detector::SpeechDetector;

const MAX_SCHEDULED_FRAMES: usize = 1_024;
/// Inputs that are kept until the turn has ended.
const MAX_PENDING_INPUTS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Output {
    /// A frame, usually of JSON.
    Frame(Vec<u8>),
    /// Ends the connection with a close frame.
    Close(u16, String),
    /// Ends the connection without one.
    Abort,
}

/// What the connection does for the session, because it takes time.
pub(super) enum Task {
    Ask(quarterdeck_contracts::ChatRequest),
    Speak(String),
}

pub(super) enum TaskResult {
    Reply(Result<ModelReply, String>),
    Samples(Option<Vec<i16>>),
}

pub(super) struct Session {
    simulation: Arc<Simulation>,
    number: usize,
    setup: Setup,
    conversation: Conversation,
    pace: Pace,
    speech_detector: SpeechDetector,
    /// Length of the last speech.
    last_speech: Duration,
    calls: Calls,
    turn: Option<Turn>,
    /// Inputs that came during a turn that cannot be interrupted.
    pending_inputs: VecDeque<Input>,
    /// When `setupComplete` is sent; `None` once it was.
    setup_complete_at: Option<Instant>,
    outputs: VecDeque<Output>,
    scheduled: Vec<(Instant, Output)>,
    task: Option<Task>,
    is_over: bool,
}

impl Session {
    pub(super) fn new(
        simulation: Arc<Simulation>,
        number: usize,
        setup: Setup,
        conversation: Conversation,
    ) -> Self {
        let scenario = simulation.scenario();
        let pace = scenario.map(|it| it.pace).unwrap_or_default();
        let silence = scenario.and_then(|it| it.silence).or(setup.silence);
        Self {
            number,
            setup,
            conversation,
            pace,
            speech_detector: SpeechDetector::new(silence),
            last_speech: Duration::ZERO,
            calls: Calls::default(),
            turn: None,
            pending_inputs: VecDeque::new(),
            setup_complete_at: None,
            outputs: VecDeque::new(),
            scheduled: Vec::new(),
            task: None,
            is_over: false,
            simulation,
        }
    }

    pub(super) fn complete_setup_at(&mut self, at: Instant) {
        self.setup_complete_at = Some(at);
    }

    pub(super) fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(super) fn take_task(&mut self) -> Option<Task> {
        self.task.take()
    }

    /// Does everything that is due.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.setup_complete_at.is_some_and(|at| at <= now) {
            self.setup_complete_at = None;
            self.send(&server_frame::setup_complete(self.number));
            self.begin_unprompted(now);
        }
        self.scheduled.sort_by_key(|(due, _)| *due);
        while !self.is_over && self.scheduled.first().is_some_and(|(due, _)| *due <= now) {
            match self.scheduled.remove(0).1 {
                Output::Frame(bytes) => self.outputs.push_back(Output::Frame(bytes)),
                end => self.end(end),
            }
        }
        while !self.is_over && self.step(now) {}
    }

    /// When [`Session::advance`] has something to do next.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let scheduled = self.scheduled.iter().map(|(due, _)| *due);
        scheduled.chain(self.setup_complete_at).chain(self.turn.as_ref().and_then(Turn::wake_at)).min()
    }

    pub(super) fn client_left(&mut self) {
        if !self.is_over {
            self.is_over = true;
            self.report_open_calls();
        }
    }

    fn may_interrupt(&self) -> bool {
        let allows = |turn: &Turn| turn.interruption != Interruption::Ignore;
        self.setup.may_be_interrupted && self.turn.as_ref().is_some_and(allows)
    }

    /// Sends a handle, if the client asked for resumption and no turn or call is open.
    fn offer_handle(&mut self, now: Instant) {
        if self.setup.resumption.is_none() || self.turn.is_some() || self.calls.are_open() {
            return;
        }
        let handle = self.simulation.state().issue_handle(self.conversation.clone(), now);
        self.send(&server_frame::resumption(Some(&handle)));
    }

    fn is_scripted(&self) -> bool {
        matches!(self.simulation.source, ReplySource::Scenario(_))
    }

    fn send(&mut self, frame: &Value) {
        self.send_bytes(frame.to_string().into_bytes());
    }

    fn send_bytes(&mut self, bytes: Vec<u8>) {
        if !self.is_over {
            self.outputs.push_back(Output::Frame(bytes));
        }
    }

    fn schedule(&mut self, due: Instant, output: Output) {
        if self.scheduled.len() < MAX_SCHEDULED_FRAMES {
            self.scheduled.push((due, output));
        }
    }

    fn fault(&self, what: &str) {
        self.simulation.state().report.fault(self.number, what);
    }

    /// Closes the connection because of a fault of the client.
    fn refuse(&mut self, why: &str) {
        self.fault(why);
        self.end(Output::Close(1007, why.to_owned()));
    }

    /// Ends the connection after the outputs before it.
    fn end(&mut self, output: Output) {
        if !self.is_over {
            self.is_over = true;
            self.outputs.push_back(output);
        }
    }
}

impl From<Ending> for Output {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Abort => Self::Abort,
            Ending::Close(code, reason) => Self::Close(code, reason),
        }
    }
}
