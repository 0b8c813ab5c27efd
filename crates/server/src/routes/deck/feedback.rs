//! `GET /api/deck/feedback`: the latest ratings of answers, with what users wrote.

use axum::Json;
use axum::extract::State;
use quarterdeck_agents::text::{GivenFeedback, Rating, list_feedback};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Operator, Shared, operation, store_error};
use crate::error::ApiError;
use crate::routes::openapi::Operation;

const MAX_RATINGS: usize = 100;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeedbackList {
    /// The latest first.
    feedback: Vec<DeckFeedback>,
    /// Whether these are all.
    is_complete: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeckFeedback {
    session_id: String,
    message_id: String,
    /// The version of the tools that the answer was given with.
    registry_version: String,
    /// In milliseconds since 1970.
    at_ms: u64,
    #[schemars(with = "String", extend("enum" = ["up", "down"]))]
    rating: Rating,
    comment: Option<String>,
}

impl From<GivenFeedback> for DeckFeedback {
    fn from(given: GivenFeedback) -> Self {
        Self {
            session_id: given.session_id,
            message_id: given.message_id,
            registry_version: given.registry_version,
            at_ms: given.at_ms,
            rating: given.feedback.rating,
            comment: given.feedback.comment,
        }
    }
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<FeedbackList>, ApiError> {
    let listed = list_feedback(&**app.orchestrator.store(), MAX_RATINGS).await;
    let (given, is_complete) = listed.map_err(|error| store_error(&error))?;
    Ok(Json(FeedbackList { feedback: given.into_iter().map(DeckFeedback::from).collect(), is_complete }))
}

pub(super) fn describe() -> Operation {
    operation("listFeedback", "List ratings of answers").json_response::<FeedbackList>(
        200,
        "The latest ratings.",
        None,
    )
}
