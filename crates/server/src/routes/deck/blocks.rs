//! `/api/deck/blocks`: blocked clients, and lifting a block.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_runtime::{Block, lift_block, list_blocks};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Operator, Shared, check_id, operation, store_error};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

/// Those that end last.
const MAX_BLOCKS: usize = 500;

#[derive(Serialize, JsonSchema)]
pub(super) struct BlockList {
    #[schemars(with = "Vec<BlockShape>")]
    blocks: Vec<Block>,
    total: usize,
}

#[derive(JsonSchema)]
#[schemars(rename = "Block", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct BlockShape {
    /// The client, or `address:` and an address whose new clients are blocked.
    client_id: String,
    until_ms: u64,
    /// The message to the user.
    message: String,
    session_id: String,
    at_ms: u64,
    /// The address that is blocked with the client.
    #[schemars(default)]
    address: Option<String>,
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<BlockList>, ApiError> {
    let found = list_blocks(&**app.orchestrator.store(), app.orchestrator.now_ms()).await;
    let mut found = found.map_err(|error| store_error(&error))?;
    let total = found.len();
    found.sort_by_key(|block| std::cmp::Reverse(block.until_ms));
    found.truncate(MAX_BLOCKS);
    Ok(Json(BlockList { blocks: found, total }))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    check_id(&id)?;
    let lifted = lift_block(&**app.orchestrator.store(), &id, app.orchestrator.now_ms()).await;
    if !lifted.map_err(|error| store_error(&error))? {
        return Err(ApiError::not_found("This client is not blocked."));
    }
    operator.record(&app, "lift_block", json!({ "clientId": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn describe_list() -> Operation {
    operation("listBlocks", "List blocked clients").json_response::<BlockList>(
        200,
        "Those that end last are first.",
        None,
    )
}

pub(super) fn describe_delete() -> Operation {
    operation("liftBlock", "Lift a block")
        .path_id("The client.", "c_1")
        .response(204, "The block is lifted.", Vec::new())
        .errors(&[404])
}
