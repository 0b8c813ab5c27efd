//! `POST /api/voice/ticket`: a credential for browsers, which cannot set a header on a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::openapi::Operation;
use super::voice;
use crate::app::App;
use crate::caller::{Caller, Credential};
use crate::error::ApiError;
use crate::surface::Surface;
use crate::voice::{TICKET_TTL, TicketHolder};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct VoiceTicket {
    /// For the query of `/voice`.
    ticket: String,
    #[schemars(range(min = 1))]
    expires_in_seconds: u64,
    /// For the header `X-Quarterdeck-Session` of further requests, so that they are those of the call's client. Absent where
    /// the client has another credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_token: Option<String>,
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<VoiceTicket>), ApiError> {
    voice::agent(&app)?;
    app.require(Surface::Voice, caller.is_verified)?;
    let session = match &caller.credential {
        Credential::SessionToken(session) => session.as_deref(),
        _ => None,
    };
    let session_token = caller.session_tokens(&app).map(|tokens| tokens.issue(session));
    let origin = caller.origin.other();
    let holder = TicketHolder { client: caller.client, is_verified: caller.is_verified, origin };
    let ticket = app.tickets.issue(&app.identity, &holder, app.orchestrator.now_ms());
    let Some(ticket) = ticket else {
        return Err(ApiError::validation("The token has too many claims for a ticket."));
    };
    // A credential must not be cached.
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(([no_store], Json(VoiceTicket { ticket, expires_in_seconds: TICKET_TTL.as_secs(), session_token })))
}

pub(super) fn describe() -> Operation {
    let example = json!({ "ticket": "eyJudW1iZXIiOiI1In0.6f", "expiresInSeconds": TICKET_TTL.as_secs() });
    Operation::new("createVoiceTicket", "voice", "Create a ticket for a call")
        .description(
            "A browser cannot set a header on a WebSocket, so it exchanges its bearer token or session token for a ticket \
             and opens `/voice?ticket=…`. A ticket is valid once, for a minute, from the origin that asked for it. A client \
             without a credential gets a session token too, so that its chat and its call are one client's. No body is \
             read.",
        )
        .json_response::<VoiceTicket>(200, "The ticket.", Some(example))
        .errors(&[400])
}
