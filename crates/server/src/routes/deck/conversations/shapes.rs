//! The shapes of kept conversations, which the agents' crate serialises.

use quarterdeck_contracts::Mode;
use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename = "ConversationSummary", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct ConversationSummaryShape {
    session_id: String,
    client_id: String,
    mode: Mode,
    turns: u64,
    /// Turns that gave no answer, or that the user did not like.
    unanswered: u64,
    /// Milliseconds since 1970.
    began_ms: u64,
    /// Milliseconds since 1970.
    last_ms: u64,
}

#[derive(JsonSchema)]
#[schemars(rename = "TranscriptTurn", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct TranscriptTurnShape {
    session_id: String,
    client_id: String,
    mode: Mode,
    registry_version: String,
    /// Its number in the session, as in the audit log.
    turn: u64,
    #[schemars(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    /// Milliseconds since 1970.
    at_ms: u64,
    user: String,
    /// The answer, in order.
    parts: Vec<TranscriptPartShape>,
    #[schemars(extend("enum" = ["answered", "no_evidence", "refused", "error"]))]
    outcome: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    heard: Option<HeardWordsShape>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    feedback: Option<FeedbackShape>,
}

#[derive(JsonSchema)]
#[schemars(rename = "TranscriptPart", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct TranscriptPartShape {
    #[schemars(extend("enum" = ["text", "call"]))]
    r#type: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The id of a call, as in the audit log.
    #[schemars(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_retrieval: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    error_type: Option<String>,
    /// Whether it succeeded and found nothing.
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_empty: Option<bool>,
}

/// What the user has heard of a spoken answer.
#[derive(JsonSchema)]
#[schemars(rename = "HeardWords", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct HeardWordsShape {
    heard_ms: u64,
    of_ms: u64,
    words: u32,
    of_words: u32,
    is_interrupted: bool,
}

#[derive(JsonSchema)]
#[schemars(rename = "TurnFeedback", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct FeedbackShape {
    #[schemars(extend("enum" = ["up", "down"]))]
    rating: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "UnansweredQuestion", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct UnansweredQuestionShape {
    session_id: String,
    turn: u64,
    /// Milliseconds since 1970.
    at_ms: u64,
    question: String,
    #[schemars(extend("enum" = ["no_evidence", "refused", "error", "thumbs_down"]))]
    reason: String,
    /// What the user wrote about the answer.
    comment: Option<String>,
}
