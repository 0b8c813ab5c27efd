//! `POST /api/deck/clients/erase`: forgets a client.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_runtime::{erase_client, list_session_ids};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, known_id, operation, sessions, stored};
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;

/// What must be said, so that nobody is erased by a slip.
const WORD: &str = "erase";
/// How often what is left of a client is looked for: an answer that was being written leaves something behind.
const ROUNDS: usize = 40;
const PAUSE: Duration = Duration::from_millis(100);
/// After how many rounds without anything new there is nobody left to write. Sessions gather what they store for a
/// quarter of a second.
const QUIET: usize = 4;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    client_id: String,
    confirm: String,
}

pub(super) async fn erase(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let Asked { client_id, confirm } = input::typed(&app, body).await?;
    if confirm != WORD {
        return Err(ApiError::validation(format!(
            "Erasing cannot be undone: say so with `\"confirm\": \"{WORD}\"`."
        )));
    }
    known_id(&client_id)?;
    let store = app.orchestrator.store();
    let (mut rows, mut quiet) = (0, 0);
    for _ in 0..ROUNDS {
        for id in list_session_ids(&**store, &client_id).await.map_err(|error| stored(&error))? {
            sessions::end(&app, &id).await?;
        }
        let erased = erase_client(&**store, &client_id).await.map_err(|error| stored(&error))?;
        rows += erased;
        quiet = if erased == 0 && !app.text.is_answering(&client_id) { quiet + 1 } else { 0 };
        if quiet == QUIET {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    operator.did(&app, "erase_client", json!({ "erasedClientId": client_id, "rows": rows }));
    Ok(Json(json!({ "rows": rows, "isComplete": quiet == QUIET })))
}

pub(super) fn erase_described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["rows", "isComplete"], "additionalProperties": false,
        "properties": {
            "rows": { "type": "integer", "description": "How many rows were erased." },
            "isComplete": {
                "type": "boolean",
                "description": "False when the client went on talking meanwhile: ask again.",
            },
        },
    });
    operation("eraseClient", "Forget a client")
        .about(
            "Ends their sessions and erases everything that is kept of them, but for the audit trail and a block. It \
             cannot be undone.",
        )
        .takes_body("EraseRequest", &[("erase", json!({ "clientId": "c_1", "confirm": WORD }))])
        .gives_json(200, "It is done.", schema, Some(json!({ "rows": 12, "isComplete": true })))
        .refuses(&[404])
}

/// The body, for the shared schemas.
pub(super) fn body_schema() -> Value {
    json!({
        "type": "object", "required": ["clientId", "confirm"], "additionalProperties": false,
        "properties": {
            "clientId": { "type": "string" },
            "confirm": { "const": WORD, "description": "So that nobody is erased by a slip." },
        },
    })
}
