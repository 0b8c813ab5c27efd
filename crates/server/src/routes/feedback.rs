//! `POST /api/feedback`: what the user thinks of an answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use quarterdeck_agents::text::{Address, Feedback, Rating};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::openapi::Operation;
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input;

const MAX_ID_CHARS: usize = 1_000;
const MAX_COMMENT_CHARS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "FeedbackRequest")]
struct FeedbackRequest {
    /// The session id, or the client's own id of the conversation.
    #[schemars(length(min = 1, max = MAX_ID_CHARS))]
    session_id: String,
    /// The id of the answer.
    #[schemars(length(min = 1, max = MAX_ID_CHARS))]
    message_id: String,
    rating: RatingChoice,
    /// Why, in the user's words.
    #[serde(default)]
    #[schemars(length(max = MAX_COMMENT_CHARS))]
    comment: Option<String>,
}

/// `none` takes a rating back, and its comment with it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum RatingChoice {
    Up,
    Down,
    None,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "GivenFeedback")]
pub(super) struct FeedbackResponse {
    message_id: String,
    rating: RatingChoice,
    comment: Option<String>,
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<FeedbackResponse>), ApiError> {
    let FeedbackRequest { session_id, message_id, rating, comment } = input::typed_json(&app, body).await?;
    for (name, id) in [("sessionId", &session_id), ("messageId", &message_id)] {
        check_chars(name, id, 1, MAX_ID_CHARS)?;
    }
    check_chars("comment", comment.as_deref().unwrap_or_default(), 0, MAX_COMMENT_CHARS)?;
    let comment = comment.map(|comment| comment.trim().to_owned()).filter(|comment| !comment.is_empty());
    let chosen = match rating {
        RatingChoice::Up => Some(Rating::Up),
        RatingChoice::Down => Some(Rating::Down),
        RatingChoice::None => None,
    };
    let feedback = chosen.map(|rating| Feedback { rating, comment });
    let user = caller.user(situation(&headers, None));
    let is_found = app.text.rate(&user, Address::Chat(&session_id), &message_id, feedback.clone()).await?;
    if !is_found {
        return Err(ApiError::not_found("Answer not found in this conversation."));
    }
    let comment = feedback.and_then(|feedback| feedback.comment);
    Ok((StatusCode::OK, Json(FeedbackResponse { message_id, rating, comment })))
}

fn check_chars(name: &str, text: &str, min: usize, max: usize) -> Result<(), ApiError> {
    match (min..=max).contains(&text.chars().count()) {
        true => Ok(()),
        false => Err(ApiError::validation(format!("`{name}` has {min} to {max} characters."))),
    }
}

pub(super) fn describe() -> Operation {
    let up = json!({ "sessionId": "chat1", "messageId": "msg_1", "rating": "up" });
    let down = json!({
        "sessionId": "chat1", "messageId": "msg_1", "rating": "down", "comment": "It is another ship.",
    });
    let given = json!({ "messageId": "msg_1", "rating": "down", "comment": "It is another ship." });
    Operation::new("rateAnswer", "chat", "Rate an answer")
        .description(
            "One rating for each answer in the caller's own conversations; another one replaces it. Conversations tell \
             ratings in the `metadata` of their answers.",
        )
        .body::<FeedbackRequest>(&[("up", up), ("down", down)])
        .json_response::<FeedbackResponse>(200, "The rating that stands.", Some(given))
        .errors(&[404, 409])
}
