//! What a voice call asks its session. All of it is in memory and never waits, so that the machine may ask at any time.

use std::sync::Arc;

use quarterdeck_contracts::{EndAfter, ModelCall, SideEffects, ToolError, ToolResponse};
use quarterdeck_runtime::{PendingEnd, Session};

use super::VoiceCore;
use crate::describe;

pub(super) trait CallSession {
    /// Begins a turn. Returns notes that belong in front of it.
    fn begin_turn(&mut self) -> Vec<String>;

    /// The number of the present turn.
    fn turn(&self) -> u64;

    /// Adds what the user has written, or what stands in the transcript of what they said.
    fn add_user_words(&mut self, words: &str);

    /// Cancels what has not begun, and voids an end that was asked for.
    fn interrupt(&mut self);

    /// The model has finished what it had to say.
    fn complete_turn(&mut self);

    /// Everything that was sent has been played: the end that waited for it, if there is one.
    fn take_end(&mut self) -> Option<PendingEnd>;

    fn flags(&self) -> SessionFlags;

    /// The end that tools have asked for.
    fn requested_end(&self) -> Option<RequestedEnd>;

    /// Notes about what the model did not see happen.
    fn take_notes(&mut self) -> Vec<String>;

    /// The provider cancels calls, by their ids.
    fn cancel(&mut self, ids: &[String]);

    fn is_write(&self, tool: &str) -> bool;

    /// The answer of a call that does not run.
    fn refuse(&self, tool: &str, error: ToolError) -> Arc<ToolResponse>;

    /// The answer of a call of `describe_tool`, where that is declared.
    fn describe_tool(&mut self, call: &ModelCall) -> Option<Arc<ToolResponse>>;
}

/// What tools have set in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionFlags {
    pub(super) drops_audio: bool,
    pub(super) hides_transcript: bool,
    pub(super) is_end_pending: bool,
    /// Whether that end is a block.
    pub(super) is_block: bool,
}

/// An end that a tool has asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestedEnd {
    /// What must be heard first, if the tool has said so.
    pub(super) words: Option<String>,
    /// Whether the client is blocked, which no interruption undoes.
    pub(super) is_block: bool,
}

pub(super) struct RuntimeSession {
    core: Arc<VoiceCore>,
    session: Session,
    has_describe_tool: bool,
    /// Guides that were given in this turn.
    described: Vec<String>,
}

impl RuntimeSession {
    pub(super) fn new(core: Arc<VoiceCore>, session: Session, has_describe_tool: bool) -> Self {
        Self { core, session, has_describe_tool, described: Vec::new() }
    }
}

impl CallSession for RuntimeSession {
    fn begin_turn(&mut self) -> Vec<String> {
        self.described.clear();
        let start = self.session.begin_turn(None);
        self.session.store_soon(start.told);
        start.notes
    }

    fn turn(&self) -> u64 {
        self.session.turn()
    }

    fn add_user_words(&mut self, words: &str) {
        self.session.add_user_words(words);
    }

    fn interrupt(&mut self) {
        self.session.interrupt();
    }

    fn complete_turn(&mut self) {
        self.session.complete_turn();
    }

    fn take_end(&mut self) -> Option<PendingEnd> {
        self.session.mark_heard()
    }

    fn flags(&self) -> SessionFlags {
        let state = self.session.state();
        SessionFlags {
            drops_audio: state.should_suppress_audio,
            hides_transcript: state.should_suppress_transcript,
            is_end_pending: state.pending_end_voice_session.is_some(),
            is_block: state.pending_end_voice_session.is_some_and(|end| end.is_block()),
        }
    }

    fn requested_end(&self) -> Option<RequestedEnd> {
        let pending = self.session.state().pending_end_voice_session?;
        let is_block = pending.is_block();
        let words = pending.closing_message.filter(|_| pending.after == EndAfter::FarewellSpoken);
        Some(RequestedEnd { words, is_block })
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.session.take_notes()
    }

    fn cancel(&mut self, ids: &[String]) {
        self.session.cancel(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn is_write(&self, tool: &str) -> bool {
        let tool = self.session.snapshot().find(tool);
        tool.is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes)
    }

    fn refuse(&self, tool: &str, error: ToolError) -> Arc<ToolResponse> {
        tracing::info!(session = self.session.id(), tool, error = error.message, "tool call refused");
        Arc::new(self.session.snapshot().refuse(tool, error, self.core.orchestrator.now()))
    }

    fn describe_tool(&mut self, call: &ModelCall) -> Option<Arc<ToolResponse>> {
        let is_meant = self.has_describe_tool && call.name == describe::NAME;
        is_meant
            .then(|| describe::answer(&self.session, call, &mut self.described, self.core.orchestrator.now()))
    }
}
