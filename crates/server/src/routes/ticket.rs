//! `POST /api/voice/ticket`: a credential for browsers, which cannot set a header on a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::openapi::Operation;
use super::voice;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::surface::Surface;
use crate::voice::{TICKET_TTL, TicketHolder};

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<Value>), ApiError> {
    voice::agent(&app)?;
    app.require(Surface::Voice, caller.is_verified)?;
    let holder = TicketHolder { client: caller.client, is_verified: caller.is_verified };
    let ticket = app.tickets.issue(&app.identity, &holder, app.orchestrator.now_ms());
    let Some(ticket) = ticket else {
        return Err(ApiError::validation("The token has too many claims for a ticket."));
    };
    // A credential must not be cached.
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(([no_store], Json(json!({ "ticket": ticket, "expiresInSeconds": TICKET_TTL.as_secs() }))))
}

pub(super) fn describe() -> Operation {
    let schema = json!({
        "type": "object", "required": ["ticket", "expiresInSeconds"], "additionalProperties": false,
        "properties": {
            "ticket": { "type": "string", "description": "For the query of `/voice`." },
            "expiresInSeconds": { "type": "integer", "minimum": 1 },
        },
    });
    let example = json!({ "ticket": "eyJudW1iZXIiOiI1In0.6f", "expiresInSeconds": TICKET_TTL.as_secs() });
    Operation::new("createVoiceTicket", "voice", "Create a ticket for a call")
        .description(
            "A browser cannot set a header on a WebSocket, so it exchanges its bearer token for a ticket and opens \
             `/voice?ticket=…`. A ticket is valid once, for a minute. No body is read.",
        )
        .json_response(200, "The ticket.", schema, Some(example))
        .errors(&[400])
}
