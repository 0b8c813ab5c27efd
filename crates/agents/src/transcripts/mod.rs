//! Conversations that operators may read, where the configuration keeps them.
//!
//! A client's own history belongs to the client and ends with its retention time. What operators keep is a copy of the
//! words with a lifetime of its own, written when a turn is over and only while it is switched on. Arguments, gates and
//! approvals are not in it: those are in the audit trail, with what is sensitive left out.

mod export;
mod outcome;
mod read;
mod write;

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::HeardReceipt;
use serde::{Deserialize, Serialize};

use crate::text::Feedback;

pub use export::{CASES_FILE, ExportedFile, export_cases, export_records};
pub(crate) use outcome::transcript_call;
pub use read::{
    ConversationSummary, StoredConversations, UnansweredQuestion, UnansweredQuestions, UnansweredReason,
    find_conversation, list_conversations, list_unanswered,
};
pub(crate) use write::{erase_conversation, record_heard, record_turn};

/// One turn: what the user said and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptTurn {
    pub session_id: String,
    pub client_id: String,
    pub mode: Mode,
    pub registry_version: String,
    /// Its number in the session, as in the audit trail.
    pub turn: u64,
    /// The id of the answer, which ratings name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    pub user: String,
    /// The answer, in order.
    pub parts: Vec<TranscriptPart>,
    pub outcome: AnswerOutcome,
    /// What the user has heard of a spoken answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<HeardWords>,
    /// What the user thinks of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

impl TranscriptTurn {
    pub fn answer(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            TranscriptPart::Text { text } => Some(text.trim()),
            TranscriptPart::Call(_) => None,
        });
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum TranscriptPart {
    Text { text: String },
    Call(TranscriptCall),
}

/// A call, by what it came to. Its arguments are in the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptCall {
    pub id: String,
    pub tool: String,
    /// Whether it looks something up.
    pub is_retrieval: bool,
    pub ok: bool,
    /// Why not, `BUDGET_EXCEEDED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Whether it succeeded and found nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_empty: bool,
}

/// Whether the user got an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOutcome {
    Answered,
    /// Every look-up came back with nothing.
    NoEvidence,
    /// What was asked for was refused, by a gate, a tool or the provider.
    Refused,
    /// The model or a tool failed.
    Error,
}

/// How much of a spoken answer the user has heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeardWords {
    pub heard_ms: u64,
    pub of_ms: u64,
    pub words: u32,
    /// Zero where no transcript of the answer has come.
    pub of_words: u32,
    pub is_interrupted: bool,
}

impl From<HeardReceipt> for HeardWords {
    fn from(receipt: HeardReceipt) -> Self {
        Self {
            heard_ms: receipt.heard.as_millis() as u64,
            of_ms: receipt.of.as_millis() as u64,
            words: receipt.words,
            of_words: receipt.of_words,
            is_interrupted: receipt.is_interrupted,
        }
    }
}

/// How the keys of a client's conversations begin.
fn client_prefix(client: &str) -> String {
    format!("o/{client}/")
}

fn session_prefix(client: &str, session: &str) -> String {
    format!("{}{session}/", client_prefix(client))
}

fn turn_key(client: &str, session: &str, turn: u64) -> String {
    format!("{}{turn:010}", session_prefix(client, session))
}

/// Where it is kept what was heard of an answer, which is known after the turn.
fn heard_key(client: &str, session: &str, turn: u64) -> String {
    format!("{}/heard", turn_key(client, session, turn))
}

/// Leads from a session to its client, also when the session itself is forgotten.
fn index_key(session: &str) -> String {
    format!("i/{session}")
}
