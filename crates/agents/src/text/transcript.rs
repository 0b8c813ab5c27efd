//! Written turns, as they are kept for operators.

use quarterdeck_contracts::Mode;

use super::TextCore;
use super::conversation::Conversation;
use super::history::TurnRecord;
use super::view::{Part, parts};
use crate::transcripts::{
    AnswerOutcome, TranscriptCall, TranscriptPart, TranscriptTurn, record_turn, transcript_call,
};

impl TextCore {
    /// Keeps a turn for operators, where conversations are kept. It is written again when a late decision changes it.
    pub(super) fn record_transcript(&self, conversation: &Conversation, record: &TurnRecord) {
        if record.number > 0 && !conversation.is_deleted() {
            record_turn(&self.orchestrator, &conversation.session, || transcript_turn(conversation, record));
        }
    }
}

fn transcript_turn(conversation: &Conversation, record: &TurnRecord) -> TranscriptTurn {
    let session = &conversation.session;
    let parts = parts(record, |_| None).into_iter().map(|part| match part {
        Part::Text(text) => TranscriptPart::Text { text },
        Part::Call { call, answer, .. } => {
            let call = transcript_call(session.snapshot(), &call.id, &call.call.name, answer.as_deref());
            TranscriptPart::Call(call)
        }
    });
    let parts: Vec<TranscriptPart> = parts.collect();
    let calls: Vec<&TranscriptCall> = parts
        .iter()
        .filter_map(|part| match part {
            TranscriptPart::Call(call) => Some(call),
            TranscriptPart::Text { .. } => None,
        })
        .collect();
    let outcome = AnswerOutcome::of(record.turn.ending(), &calls);
    TranscriptTurn {
        session_id: session.id().to_owned(),
        client_id: session.client().to_owned(),
        mode: Mode::Text,
        registry_version: session.snapshot().version().to_owned(),
        turn: record.number,
        message_id: Some(record.message_id.to_string()),
        at_ms: record.at_ms,
        user: record.said.clone(),
        parts,
        outcome,
        heard: None,
        feedback: None,
    }
}
