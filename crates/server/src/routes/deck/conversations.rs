//! `/api/deck/conversations` and `/api/deck/unanswered`: what users said, where it is kept, and questions without an answer.
//!
//! Words are shown only after the audit log says who has opened them.

mod shapes;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_agents::transcripts::{
    ConversationSummary, TranscriptTurn, UnansweredQuestion, export_cases, export_records, find_conversation,
    list_conversations, list_unanswered,
};
use quarterdeck_contracts::ErrorType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Operator, Shared, check_id, operation, store_error};
use crate::app::App;
use crate::error::ApiError;
use crate::input::{self, Id, QueryParams};
use crate::routes::openapi::Operation;
use shapes::{ConversationSummaryShape, TranscriptTurnShape, UnansweredQuestionShape};

const MAX_CONVERSATIONS: usize = 200;
const MAX_QUESTIONS: usize = 500;
const MS_PER_DAY: u64 = 24 * 3_600_000;
/// What an operator is told where nothing is kept.
const NOT_KEPT: &str = "Conversations are not kept on this server. Set `keep = \"on\"` under `[transcripts]` and a key in \
                        QUARTERDECK_TRANSCRIPTS__KEY, then restart; tell your users.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct ConversationsQuery {
    /// The client.
    #[schemars(extend("example" = "c_1"))]
    client: Option<String>,
    /// Maximum conversations.
    #[schemars(range(min = 1, max = MAX_CONVERSATIONS), extend("example" = "50"))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversationList {
    /// For how many days they are kept; null if they are not.
    retain_days: Option<u64>,
    /// How to switch it on, if it is off.
    hint: Option<String>,
    /// The latest first, without words.
    #[schemars(with = "Vec<ConversationSummaryShape>")]
    conversations: Vec<ConversationSummary>,
    /// Whether these are all.
    is_complete: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "KeptConversation")]
pub(super) struct Conversation {
    session_id: String,
    /// The oldest first.
    #[schemars(with = "Vec<TranscriptTurnShape>")]
    turns: Vec<TranscriptTurn>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UnansweredList")]
pub(super) struct UnansweredList {
    /// For how many days conversations are kept; null if they are not.
    retain_days: Option<u64>,
    /// How to switch it on, if it is off.
    hint: Option<String>,
    /// The latest first.
    #[schemars(with = "Vec<UnansweredQuestionShape>")]
    questions: Vec<UnansweredQuestion>,
    /// Whether these are all.
    is_complete: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "UnansweredExportRequest")]
struct ExportRequest {
    form: ExportForm,
    /// Only these; all if it is left out.
    #[serde(default)]
    #[schemars(length(max = MAX_QUESTIONS))]
    questions: Option<Vec<QuestionId>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ExportForm {
    /// Records of the knowledge base, to be filled in.
    Records,
    /// Cases for `quarterdeck test`.
    Cases,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuestionId {
    session_id: String,
    turn: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UnansweredExport")]
pub(super) struct Export {
    /// The name of the file.
    name: &'static str,
    text: String,
    /// How many questions it holds, repetitions included.
    questions: usize,
}

pub(super) async fn list(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<ConversationsQuery>,
) -> Result<Json<ConversationList>, ApiError> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_CONVERSATIONS).contains(&limit) {
        return Err(ApiError::validation(format!("`limit` must be between 1 and {MAX_CONVERSATIONS}.")));
    }
    let Some(since_ms) = kept_since(&app) else {
        let hint = Some(NOT_KEPT.to_owned());
        let conversations = Vec::new();
        return Ok(Json(ConversationList { retain_days: None, hint, conversations, is_complete: true }));
    };
    let client = query.client.filter(|client| !client.is_empty());
    let listed = list_conversations(&**app.orchestrator.store(), client.as_deref(), since_ms, limit).await;
    let listed = listed.map_err(|error| store_error(&error))?;
    Ok(Json(ConversationList {
        retain_days: retain_days(&app),
        hint: None,
        conversations: listed.conversations,
        is_complete: listed.is_complete,
    }))
}

pub(super) async fn get(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<Json<Conversation>, ApiError> {
    check_id(&id)?;
    let since_ms = kept_since(&app).ok_or_else(not_kept)?;
    let found = find_conversation(&**app.orchestrator.store(), &id, since_ms).await;
    let Some(turns) = found.map_err(|error| store_error(&error))? else {
        return Err(ApiError::not_found("Nothing is kept of this session."));
    };
    let client = turns.first().map(|turn| turn.client_id.clone());
    let details = json!({ "sessionId": id, "clientId": client, "turns": turns.len() });
    operator.record_first(&app, "open_conversation", details).await?;
    Ok(Json(Conversation { session_id: id, turns }))
}

pub(super) async fn unanswered(
    State(app): Shared,
    operator: Operator,
) -> Result<Json<UnansweredList>, ApiError> {
    let Some(since_ms) = kept_since(&app) else {
        let hint = Some(NOT_KEPT.to_owned());
        return Ok(Json(UnansweredList {
            retain_days: None,
            hint,
            questions: Vec::new(),
            is_complete: true,
        }));
    };
    let listed = list_unanswered(&**app.orchestrator.store(), since_ms, MAX_QUESTIONS).await;
    let listed = listed.map_err(|error| store_error(&error))?;
    operator.record_first(&app, "list_unanswered", json!({ "questions": listed.questions.len() })).await?;
    Ok(Json(UnansweredList {
        retain_days: retain_days(&app),
        hint: None,
        questions: listed.questions,
        is_complete: listed.is_complete,
    }))
}

pub(super) async fn export(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<Export>, ApiError> {
    let ExportRequest { form, questions: chosen } = input::typed_json(&app, body).await?;
    let since_ms = kept_since(&app).ok_or_else(not_kept)?;
    let listed = list_unanswered(&**app.orchestrator.store(), since_ms, MAX_QUESTIONS).await;
    let mut questions = listed.map_err(|error| store_error(&error))?.questions;
    if let Some(chosen) = chosen {
        questions.retain(|question| {
            chosen.iter().any(|id| id.session_id == question.session_id && id.turn == question.turn)
        });
    }
    if questions.is_empty() {
        return Err(ApiError::not_found("None of these questions is in the list any more."));
    }
    operator.record_first(&app, "export_unanswered", json!({ "questions": questions.len() })).await?;
    let file = match form {
        ExportForm::Records => export_records(&questions),
        ExportForm::Cases => export_cases(&questions),
    };
    Ok(Json(Export { name: file.name, text: file.text, questions: questions.len() }))
}

/// Since when turns are shown, in milliseconds since 1970; `None` where none is kept.
fn kept_since(app: &App) -> Option<u64> {
    let retention = app.orchestrator.policy().transcript_retention?;
    Some(app.orchestrator.now_ms().saturating_sub(retention.as_millis() as u64))
}

fn retain_days(app: &App) -> Option<u64> {
    Some(app.orchestrator.policy().transcript_retention?.as_millis() as u64 / MS_PER_DAY)
}

fn not_kept() -> ApiError {
    ApiError::new(ErrorType::Unavailable, NOT_KEPT).with_status(axum::http::StatusCode::NOT_FOUND)
}

pub(super) fn describe_list() -> Operation {
    operation("listKeptConversations", "List kept conversations, latest first")
        .description("Without words. They are kept only where `[transcripts]` says so.")
        .query::<ConversationsQuery>()
        .json_response::<ConversationList>(200, "The conversations.", None)
}

pub(super) fn describe() -> Operation {
    operation("openConversation", "Open a kept conversation")
        .description("The audit log says who has opened it, before it is shown.")
        .path_id("The session.", "ses_1")
        .json_response::<Conversation>(200, "What was said.", None)
        .errors(&[404, 503])
}

pub(super) fn describe_unanswered() -> Operation {
    operation("listUnanswered", "List questions without an answer")
        .description(
            "Questions of kept conversations that found no evidence, were refused or failed, or whose answers users rated \
             down. The audit log says who has read the list.",
        )
        .json_response::<UnansweredList>(200, "The questions.", None)
        .errors(&[503])
}

pub(super) fn describe_export() -> Operation {
    let one = json!({ "form": "records", "questions": [{ "sessionId": "ses_1", "turn": 1 }] });
    operation("exportUnanswered", "Export questions without an answer")
        .description(
            "As records of the knowledge base that are to be filled in, or as cases for `kb_search`.",
        )
        .body::<ExportRequest>(&[("all", json!({ "form": "cases" })), ("one", one)])
        .json_response::<Export>(200, "A file.", None)
        .errors(&[404, 503])
}
