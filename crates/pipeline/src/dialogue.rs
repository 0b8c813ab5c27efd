//! Who speaks, what is asked and what is said: the pipeline without its engines. It does no I/O and is given the time.
//!
//! The connection starts what [`Dialogue`] wants done and reports what came of it. What is under way is known here, so that
//! cancelling is forgetting it: the connection drops whatever this no longer knows of.

mod from_agent;
mod from_model;
mod speaking;

use std::collections::VecDeque;
use std::time::Duration;

use quarterdeck_contracts::{ChatMessage, LiveEvent, ToolUse, TranscriptPiece, TranscriptStage};
use tokio::time::Instant;

use crate::conversation::Conversation;
use crate::language::Language;
use crate::playback::{Pace, Playback};
use crate::sentences::Sentences;
use crate::settings::PipelineSettings;

/// How long what the user says waits for the results of calls that are running.
const RESULT_GRACE: Duration = Duration::from_secs(3);
/// How often the model may be asked within one turn before it must answer in words. The orchestrator's own limit is lower.
const MAX_STEPS: u32 = 24;

/// The state of one conversation.
pub(crate) struct Dialogue {
    pub(crate) conversation: Conversation,
    pub(crate) events: VecDeque<LiveEvent<'static>>,
    pub(crate) language: Language,
    playback: Playback,
    pace: Pace,
    sentences: Sentences,
    queue: VecDeque<QueuedPiece>,
    generating: Option<Generating>,
    speaking: Option<SpeakingPiece>,
    turn: Turn,
    max_lead: Duration,
}

/// A piece of a reply, or words of our own, that waits to be spoken.
#[derive(Debug)]
struct QueuedPiece {
    reply: Option<u64>,
    text: String,
    is_code: bool,
    /// It was shown, and its voice has failed: it is not shown or tried again.
    is_rest: bool,
}

/// The piece that is being spoken.
#[derive(Debug)]
struct SpeakingPiece {
    piece: QueuedPiece,
    chars: usize,
    /// Some of its audio was sent.
    has_begun: bool,
}

/// A reply that is being written.
#[derive(Debug)]
struct Generating {
    number: u64,
    text: String,
    is_too_long: bool,
}

#[derive(Debug, Default)]
struct Turn {
    is_listening: bool,
    /// What the user said is being transcribed, and whether it wants an answer.
    is_transcribing: bool,
    wants_transcript: bool,
    /// The agent knows words of the user that belong to this turn, so that more of them follow after a space.
    has_words: bool,
    /// The model is to be asked as soon as that can be done.
    wants_answer: bool,
    /// Until when that waits for results.
    waits_until: Option<Instant>,
    /// The agent takes a turn to be open.
    is_open: bool,
    /// An answer is being given: from the question to the end of its playback.
    is_answering: bool,
    /// The turn has ended since, so that another answer is heard from its beginning. The agent counts in the same way.
    is_answer_over: bool,
    is_generation_complete: bool,
    /// The agent knows that the model waits for results.
    is_pause_reported: bool,
    /// The first reply of the answer, and how often the model was asked for it.
    first_reply: u64,
    steps: u32,
    /// How often it was asked again because its reply was lost.
    repeats: u32,
    /// The last utterance could not be transcribed.
    was_not_heard: bool,
}

/// What the model is asked.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) tool_use: ToolUse,
}

impl Dialogue {
    pub(crate) fn new(
        conversation: Conversation,
        asks: bool,
        language: Language,
        settings: &PipelineSettings,
    ) -> Self {
        let turn = Turn { wants_answer: asks, is_open: asks, is_answer_over: true, ..Turn::default() };
        Self {
            conversation,
            events: VecDeque::new(),
            language,
            playback: Playback::default(),
            pace: Pace::default(),
            sentences: Sentences::default(),
            queue: VecDeque::new(),
            generating: None,
            speaking: None,
            turn,
            max_lead: settings.max_lead,
        }
    }

    pub(crate) fn is_generating(&self) -> bool {
        self.generating.is_some()
    }

    pub(crate) fn is_speaking(&self) -> bool {
        self.speaking.is_some()
    }

    /// What the model is to be asked now, if anything. It counts as asked.
    pub(crate) fn next_question(&mut self, now: Instant, max_tokens: usize) -> Option<Question> {
        let is_hearing = self.turn.is_listening || self.turn.is_transcribing;
        if !self.turn.wants_answer || is_hearing || self.is_generating() {
            return None;
        }
        if self.conversation.awaits_results() {
            if self.turn.waits_until.is_none_or(|until| now < until) {
                return None;
            }
            self.conversation.detach_calls();
        }
        self.turn.wants_answer = false;
        self.turn.waits_until = None;
        self.conversation.trim(max_tokens);
        let Some(messages) = self.conversation.request() else {
            self.close_idle_turn();
            return None;
        };
        self.begin_answer();
        self.turn.steps += 1;
        let tool_use = if self.turn.steps > MAX_STEPS { ToolUse::Off } else { ToolUse::Allowed };
        let number = self.conversation.begin_reply();
        self.turn.first_reply = self.turn.first_reply.min(number);
        self.generating = Some(Generating { number, text: String::new(), is_too_long: false });
        Some(Question { messages, tool_use })
    }

    /// An answer begins, unless one is being given.
    fn begin_answer(&mut self) {
        self.turn.is_open = true;
        self.turn.is_answering = true;
        if std::mem::take(&mut self.turn.is_answer_over) {
            self.playback = Playback::default();
            (self.turn.steps, self.turn.repeats, self.turn.first_reply) = (0, 0, u64::MAX);
        }
        (self.turn.is_generation_complete, self.turn.is_pause_reported) = (false, false);
    }

    /// Ends the turn if everything was said and can have been played. Returns whether something was reported.
    pub(crate) fn end_turn_if_done(&mut self, now: Instant) -> bool {
        let is_busy = self.is_generating() || self.is_speaking() || !self.queue.is_empty();
        if !self.turn.is_answering || is_busy {
            return false;
        }
        if self.conversation.awaits_results() {
            let is_news = !std::mem::replace(&mut self.turn.is_pause_reported, true);
            if is_news {
                self.events.push_back(LiveEvent::TurnComplete { more_follows: true });
            }
            return is_news;
        }
        if self.turn.wants_answer || self.turn.is_listening || self.turn.is_transcribing {
            return false;
        }
        if !std::mem::replace(&mut self.turn.is_generation_complete, true) {
            let text = "".into();
            let last = TranscriptPiece { text, stage: TranscriptStage::Final };
            self.events.push_back(LiveEvent::OutputTranscript(last));
            self.events.push_back(LiveEvent::GenerationComplete);
            return true;
        }
        if !self.playback.is_played(now) {
            return false;
        }
        self.turn.is_answering = false;
        self.close_turn();
        true
    }

    /// When something is to be looked at again without anything having come.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let pace = self.playback.ends().map(|ends| match self.is_speaking() || !self.queue.is_empty() {
            true => ends.checked_sub(self.max_lead).unwrap_or(ends),
            false => ends,
        });
        let pace = pace.filter(|at| *at > now && self.turn.is_answering);
        let waits = self.turn.waits_until.filter(|at| *at > now && self.turn.wants_answer);
        pace.into_iter().chain(waits).min()
    }

    fn close_turn(&mut self) {
        self.turn.is_answer_over = true;
        self.turn.has_words = false;
        if std::mem::take(&mut self.turn.is_open) {
            self.events.push_back(LiveEvent::TurnComplete { more_follows: false });
        }
    }

    /// Closes a turn in which nothing was asked and nothing is being answered.
    fn close_idle_turn(&mut self) {
        let is_waiting =
            self.turn.wants_answer || self.turn.is_answering || self.conversation.awaits_results();
        if !is_waiting && !self.turn.is_listening && !self.turn.is_transcribing {
            self.close_turn();
        }
    }
}
