//! `GET /voice`: from HTTP to a WebSocket that is spoken on.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_agents::text::User;
use quarterdeck_agents::voice::VoiceAgent;
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::Client;
use quarterdeck_websocket::accept_key;
use serde::Deserialize;
use serde_json::{Value, json};

use super::openapi::Operation;
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input::Asking;
use crate::surface::Surface;
use crate::voice::{Caught, TicketHolder};

#[derive(Deserialize)]
pub(super) struct Query {
    ticket: Option<String>,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Asking(Query { ticket }): Asking<Query>,
    mut request: Request,
) -> Result<Response, ApiError> {
    if ticket.is_none() {
        app.require(Surface::Voice, caller.is_proved)?;
    }
    if !asks_for_websocket(&request) {
        return Ok(upgrade_required());
    }
    let key = key(request.headers())?;
    let agent = agent(&app)?.clone();
    // A ticket is for this call, and a cookie may be anybody's who has used the page before.
    let client = match ticket {
        Some(ticket) => redeemed(&app, &ticket)?,
        None => caller.client,
    };
    let place = app.admit_call(&client.id, Some(&caller.source))?;
    let visitor = User { client, situation: situation(request.headers(), None) };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(Caught { app, agent, visitor, place }.put_through(upgrade));
    let headers = [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::SEC_WEBSOCKET_ACCEPT, key),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response())
}

/// The agent that people speak to, if there is one.
pub(super) fn agent(app: &App) -> Result<&VoiceAgent, ApiError> {
    app.voice.as_ref().ok_or_else(|| {
        let message =
            "Nobody can be spoken with here. Whoever runs the server can turn voice on; the chat works.";
        ApiError::new(ErrorType::Unavailable, message).with_status(StatusCode::SERVICE_UNAVAILABLE)
    })
}

fn redeemed(app: &App, ticket: &str) -> Result<Client, ApiError> {
    let holder = app.tickets.redeem(&app.identity, ticket, app.orchestrator.now_ms());
    let TicketHolder { client, is_proved } = holder.ok_or_else(|| {
        ApiError::new(ErrorType::Auth, "The ticket is not valid, has expired, or was used. Get another one.")
    })?;
    app.require(Surface::Voice, is_proved)?;
    Ok(client)
}

fn asks_for_websocket(request: &Request) -> bool {
    let says = |name: HeaderName, word: &str| {
        let values = request.headers().get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
    };
    request.method() == Method::GET
        && says(header::CONNECTION, "upgrade")
        && says(header::UPGRADE, "websocket")
        && says(header::SEC_WEBSOCKET_VERSION, "13")
}

fn upgrade_required() -> Response {
    let message = "Here is a WebSocket of version 13: ask with `Connection: Upgrade`, `Upgrade: websocket` and \
                   `Sec-WebSocket-Version: 13`.";
    let error = ApiError::validation(message).with_status(StatusCode::UPGRADE_REQUIRED);
    let headers = [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
    ];
    (headers, error).into_response()
}

/// What answers the client's key.
fn key(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).map(str::trim);
    let is_key = |key: &&str| base64_simd::STANDARD.decode_to_vec(key).is_ok_and(|bytes| bytes.len() == 16);
    let accepted = key.filter(is_key).and_then(|key| HeaderValue::from_str(&accept_key(key)).ok());
    accepted.ok_or_else(|| ApiError::validation("`Sec-WebSocket-Key` must be 16 bytes in base64."))
}

pub(super) fn described() -> Operation {
    Operation::new("openCall", "voice", "Speak with the agent")
        .about(
            "A WebSocket. Bytes are audio: PCM of 16 bits, little-endian, mono, 16 kHz from the client and 24 kHz to it. \
             Texts are JSON with a `type`.\n\n\
             The client begins with `start {sessionId?, resumeToken?, pendingRequest?, audio?, timeZone?, locale?}` within \
             ten seconds; with `audio: \"base64\"` it gets `audio {data}` instead of bytes. Then it sends audio (bytes, or \
             `audio {data}` in base64), `text {text}`, `confirm {token, approve}`, `playback {state: \"drained\"}`, \
             `interrupt`, `stop` and `ping`.\n\n\
             The server sends `ready {sessionId, resumeToken, resumed, toolsVersion, provider, audio}`, audio, `transcript \
             {role, text, final}`, `tool_call {callId, name, args}`, `tool_result {callId, ok, error?, duration, gates?}`, \
             `confirmation_request {callId, token, tool, args, preview, expires}`, `progress {callId, text}`, \
             `interrupted`, `turn_complete`, `timeout {durationSeconds, timeoutUntil, farewellMessage}`, `session_end \
             {reason, closingMessage, textResponse}`, `message {data}`, `error {error}`, `going_away {inMs}` and `pong`.\n\n\
             What is not understood gets an `error`, also in the place of `start`, which may then be said again. Audio or \
             another message before `start`, a message of more than 64 KB, more than 300 frames a second, audio at more \
             than twice its own pace, or a flood of errors gets an `error` and is closed: 1008, or 1009 for the size. 1008 \
             too for a second call of one client that does not resume the first, and for a client who is blocked. Other \
             codes: 1000 the call is over, 1001 the server stops, 1011 the model cannot be reached, 1013 all lines are \
             busy, 4001 the call goes on with another connection, 4002 no `start` in time. A server without room answers \
             503 and opens no WebSocket; another origin gets 403. While a call is on, the client's chat is paused.",
        )
        .may_take(
            "query",
            "ticket",
            json!({ "type": "string" }),
            "A ticket of `POST /api/voice/ticket`, which says who calls. It counts before a cookie.",
            "eyJudW1iZXIiOiI1In0.6f",
        )
        .gives(101, "The connection is a WebSocket now.", Value::Null)
        .refuses(&[400, 426])
}
