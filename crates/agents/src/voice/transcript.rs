//! Spoken turns, as they are kept for operators.

use quarterdeck_contracts::{Mode, ToolResponse};
use quarterdeck_runtime::{Orchestrator, Session};

use super::state::SpokenTurn;
use crate::transcripts::{
    AnswerOutcome, TranscriptCall, TranscriptPart, TranscriptTurn, record_turn, transcript_call,
};

/// How many parts of one turn are kept: a user who never pauses must not grow it for ever.
const MAX_PARTS: usize = 200;

/// The turn that is being spoken, and the last one, to which words may still be added.
#[derive(Debug, Default)]
pub(super) struct SpokenTranscript {
    calls: Vec<TranscriptCall>,
    last: Option<TranscriptTurn>,
}

impl SpokenTranscript {
    /// The model is told what a call came to.
    pub(super) fn add_call(
        &mut self,
        session: &Session,
        id: Option<&str>,
        tool: &str,
        response: &ToolResponse,
    ) {
        if self.calls.len() < MAX_PARTS {
            self.calls.push(transcript_call(
                session.snapshot(),
                id.unwrap_or_default(),
                tool,
                Some(response),
            ));
        }
    }

    /// A turn is over. One that goes on under the same number, because the model was told something, is one turn.
    pub(super) fn record(&mut self, orchestrator: &Orchestrator, session: &Session, turn: SpokenTurn) {
        if orchestrator.policy().transcript_retention.is_none() {
            return self.calls.clear();
        }
        let mut kept = match self.last.take() {
            Some(last) if last.turn == turn.turn => last,
            _ => blank_turn(session, turn.turn, orchestrator.now_ms()),
        };
        add_line(&mut kept.user, &turn.user);
        kept.parts.extend(self.calls.drain(..).map(TranscriptPart::Call));
        if !turn.answer.is_empty() {
            kept.parts.push(TranscriptPart::Text { text: turn.answer });
        }
        kept.parts.truncate(MAX_PARTS);
        let calls = kept.parts.iter().filter_map(|part| match part {
            TranscriptPart::Call(call) => Some(call),
            TranscriptPart::Text { .. } => None,
        });
        kept.outcome = AnswerOutcome::of(None, &calls.collect::<Vec<_>>());
        record_turn(orchestrator, session, || kept.clone());
        self.last = Some(kept);
    }

    /// Words of the last turn were transcribed only now.
    pub(super) fn amend(&mut self, orchestrator: &Orchestrator, session: &Session, words: &str) {
        if let Some(last) = &mut self.last {
            add_line(&mut last.user, words.trim());
            record_turn(orchestrator, session, || last.clone());
        }
    }
}

fn add_line(to: &mut String, words: &str) {
    if !to.is_empty() && !words.is_empty() {
        to.push('\n');
    }
    to.push_str(words);
}

fn blank_turn(session: &Session, turn: u64, at_ms: u64) -> TranscriptTurn {
    TranscriptTurn {
        session_id: session.id().to_owned(),
        client_id: session.client().to_owned(),
        mode: Mode::Voice,
        registry_version: session.snapshot().version().to_owned(),
        turn,
        message_id: None,
        at_ms,
        user: String::new(),
        parts: Vec::new(),
        outcome: AnswerOutcome::Answered,
        heard: None,
        feedback: None,
    }
}
