//! `GET /api/sessions`: the caller's conversations.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use quarterdeck_agents::text::{ConversationSummary, ListCursor, MAX_TITLE_CHARS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::openapi::Operation;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::input::QueryParams;

const DEFAULT_PAGE: usize = 30;
const MAX_PAGE: usize = 100;
/// Fifteen digits, a dot and the id of a session.
const MAX_CURSOR_CHARS: usize = 144;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct ListQuery {
    /// `next` of the previous page.
    #[schemars(
        length(min = 3, max = MAX_CURSOR_CHARS),
        regex(pattern = r"^[0-9]{1,15}\.[A-Za-z0-9_.:@-]{1,128}$"),
        extend("example" = "1760000000000.ses_1")
    )]
    after: Option<String>,
    /// Maximum conversations.
    #[schemars(range(min = 1, max = MAX_PAGE), extend("example" = "30"))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConversationList")]
pub(super) struct SessionList {
    /// The latest first.
    sessions: Vec<ListedSession>,
    /// Where the next page begins; null on the last.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListedConversation")]
struct ListedSession {
    /// The client's own id of the conversation, or else the session id. It is the `id` of the other requests.
    id: String,
    session_id: String,
    /// The beginning of the first message.
    #[schemars(length(max = MAX_TITLE_CHARS))]
    title: String,
    /// In milliseconds since 1970.
    created_ms: u64,
    /// When the last message came.
    updated_ms: u64,
}

impl From<ConversationSummary> for ListedSession {
    fn from(conversation: ConversationSummary) -> Self {
        let ConversationSummary { id, session_id, title, created_ms, updated_ms } = conversation;
        Self { id, session_id, title, created_ms, updated_ms }
    }
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(ApiError::validation(format!("`limit` is between 1 and {MAX_PAGE}.")));
    }
    let after = query.after.as_deref().map(str::parse::<ListCursor>).transpose();
    let after = after.map_err(|_| ApiError::validation("`after` is `next` of an earlier page."))?;
    let list = app.text.list(&caller.client.id, after.as_ref(), limit).await;
    let list = list.map_err(|error| ApiError::internal("store read failed", &error))?;
    let next = list.next.map(|next| next.to_string());
    Ok(Json(SessionList {
        sessions: list.conversations.into_iter().map(ListedSession::from).collect(),
        next,
    }))
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "sessions": [{
            "id": "chat1", "sessionId": "ses_1", "title": "Who designed the Fram?",
            "createdMs": 1_760_000_000_000_u64, "updatedMs": 1_760_000_060_000_u64,
        }],
        "next": null,
    });
    Operation::new("listConversations", "chat", "List conversations")
        .description(
            "The caller's own written conversations, also those whose session has ended. The last 200 are listed.",
        )
        .query::<ListQuery>()
        .json_response::<SessionList>(200, "The conversations.", Some(example))
}
