//! `POST /api/deck/clients/erase`: erases a client's data.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_runtime::{erase_client, list_session_ids};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Operator, Shared, check_id, operation, sessions, store_error};
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;

/// Required in the body against accidental erasure.
const CONFIRM_WORD: &str = "erase";
/// An answer in progress may write more rows, so erasing is repeated.
const MAX_ROUNDS: usize = 40;
const ROUND_INTERVAL: Duration = Duration::from_millis(100);
/// Complete after so many rounds without new rows. Sessions batch their writes for a quarter of a second.
const EMPTY_ROUNDS: usize = 4;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EraseRequest {
    client_id: String,
    /// Prevents accidental erasure.
    #[schemars(extend("const" = CONFIRM_WORD))]
    confirm: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct EraseResult {
    /// Rows erased.
    rows: u64,
    /// False if the client was still active: repeat the request.
    is_complete: bool,
}

pub(super) async fn erase(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<EraseResult>, ApiError> {
    let EraseRequest { client_id, confirm } = input::typed_json(&app, body).await?;
    if confirm != CONFIRM_WORD {
        return Err(ApiError::validation(format!(
            "Erasing cannot be undone: send `\"confirm\": \"{CONFIRM_WORD}\"`."
        )));
    }
    check_id(&client_id)?;
    let store = app.orchestrator.store();
    let (mut rows, mut empty_rounds) = (0, 0);
    for _ in 0..MAX_ROUNDS {
        for id in list_session_ids(&**store, &client_id).await.map_err(|error| store_error(&error))? {
            sessions::end(&app, &id).await?;
        }
        let erased = erase_client(&**store, &client_id).await.map_err(|error| store_error(&error))?;
        rows += erased;
        empty_rounds = if erased == 0 && !app.text.is_answering(&client_id) { empty_rounds + 1 } else { 0 };
        if empty_rounds == EMPTY_ROUNDS {
            break;
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
    operator.record(&app, "erase_client", json!({ "erasedClientId": client_id, "rows": rows }));
    Ok(Json(EraseResult { rows, is_complete: empty_rounds == EMPTY_ROUNDS }))
}

pub(super) fn describe_erase() -> Operation {
    operation("eraseClient", "Erase a client")
        .description(
            "Ends the client's sessions and erases all its data except the audit log and a block. It cannot be undone.",
        )
        .body::<EraseRequest>(&[("erase", json!({ "clientId": "c_1", "confirm": CONFIRM_WORD }))])
        .json_response::<EraseResult>(200, "The data is erased.", Some(json!({ "rows": 12, "isComplete": true })))
        .errors(&[404])
}
