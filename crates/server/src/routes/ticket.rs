//! `POST /api/voice/ticket`: a way to say who calls, for browsers, which cannot set a header on a WebSocket.

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
use crate::voice::{LIFE, TicketHolder};

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<Value>), ApiError> {
    voice::agent(&app)?;
    app.require(Surface::Voice, caller.is_proved)?;
    let holder = TicketHolder { client: caller.client, is_proved: caller.is_proved };
    let ticket = app.tickets.issue(&app.identity, &holder, app.orchestrator.now_ms());
    let Some(ticket) = ticket else {
        return Err(ApiError::validation("Your token holds too many claims for a ticket."));
    };
    // It opens a call, so nobody keeps it.
    let kept = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(([kept], Json(json!({ "ticket": ticket, "expiresInSeconds": LIFE.as_secs() }))))
}

pub(super) fn described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["ticket", "expiresInSeconds"], "additionalProperties": false,
        "properties": {
            "ticket": { "type": "string", "description": "For the query of `/voice`, once." },
            "expiresInSeconds": { "type": "integer", "minimum": 1 },
        },
    });
    let example = json!({ "ticket": "eyJudW1iZXIiOiI1In0.6f", "expiresInSeconds": LIFE.as_secs() });
    Operation::new("createVoiceTicket", "voice", "Get a ticket for a call")
        .about(
            "A browser cannot set a header on a WebSocket. Whoever is known by a bearer token trades it for a ticket, and \
             opens `/voice?ticket=…` with it. It is good once, and for a minute. No body is read.",
        )
        .gives_json(200, "The ticket.", schema, Some(example))
        .refuses(&[400])
}
