//! `GET /voice`: upgrades to the WebSocket of a call.

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
use schemars::JsonSchema;
use serde::Deserialize;

use super::openapi::Operation;
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input::QueryParams;
use crate::request_log::RequestLog;
use crate::surface::Surface;
use crate::voice::{IncomingCall, TicketHolder};

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Query {
    /// A ticket from `POST /api/voice/ticket`. It takes precedence over a cookie.
    #[schemars(extend("example" = "eyJudW1iZXIiOiI1In0.6f"))]
    ticket: Option<String>,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(Query { ticket }): QueryParams<Query>,
    log: RequestLog,
    mut request: Request,
) -> Result<Response, ApiError> {
    if ticket.is_none() {
        app.require(Surface::Voice, caller.is_verified)?;
        caller.refuse_blocked_address()?;
    }
    if !is_websocket_upgrade(&request) {
        return Ok(upgrade_required());
    }
    let accept = accept_header(request.headers())?;
    let agent = agent(&app)?.clone();
    // A ticket is for this call; a cookie may belong to an earlier user of the browser.
    let client = match ticket {
        Some(ticket) => redeem(&app, &ticket, &caller).await?,
        None => caller.client,
    };
    log.set_client(&client.id);
    let permit = app.admission.admit_call(&client.id, Some(&caller.source))?;
    let user = User { client, situation: situation(request.headers(), None) };
    let upgrade = hyper::upgrade::on(&mut request);
    let line = log.into_call();
    tokio::spawn(IncomingCall { app, agent, user, permit, line }.run_after(upgrade));
    let headers = [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response())
}

/// The voice agent, or a refusal if voice is off.
pub(super) fn agent(app: &App) -> Result<&VoiceAgent, ApiError> {
    app.voice.as_ref().ok_or_else(|| {
        let message = "Voice is not configured on this server.";
        ApiError::new(ErrorType::Unavailable, message).with_status(StatusCode::SERVICE_UNAVAILABLE)
    })
}

async fn redeem(app: &App, ticket: &str, caller: &Caller) -> Result<Client, ApiError> {
    let origin = caller.origin.other();
    let now_ms = app.orchestrator.now_ms();
    let holder = app.tickets.redeem(&app.identity, ticket, origin.as_deref(), now_ms).await;
    let holder = holder.map_err(|error| ApiError::store("ticket was not redeemed", &error))?;
    let TicketHolder { client, is_verified, .. } = holder.ok_or_else(|| {
        ApiError::new(
            ErrorType::Auth,
            "The ticket is invalid, expired, used or another page's. Request another one.",
        )
    })?;
    app.require(Surface::Voice, is_verified)?;
    // The call comes from where its WebSocket does. A client that has signed in cannot come back as another one.
    let address = caller.client.address.clone().filter(|_| !is_verified);
    Ok(Client { address, ..client })
}

fn is_websocket_upgrade(request: &Request) -> bool {
    let has_token = |name: HeaderName, word: &str| {
        let values = request.headers().get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    request.method() == Method::GET
        && has_token(header::CONNECTION, "upgrade")
        && has_token(header::UPGRADE, "websocket")
        && has_token(header::SEC_WEBSOCKET_VERSION, "13")
}

fn upgrade_required() -> Response {
    let message = "This is a WebSocket: send `Connection: Upgrade`, `Upgrade: websocket` and \
                   `Sec-WebSocket-Version: 13`.";
    let error = ApiError::validation(message).with_status(StatusCode::UPGRADE_REQUIRED);
    let headers = [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
    ];
    (headers, error).into_response()
}

/// The response to `Sec-WebSocket-Key`.
fn accept_header(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).map(str::trim);
    let is_key = |key: &&str| base64_simd::STANDARD.decode_to_vec(key).is_ok_and(|bytes| bytes.len() == 16);
    let accept = key.filter(is_key).and_then(|key| HeaderValue::from_str(&accept_key(key)).ok());
    accept.ok_or_else(|| ApiError::validation("`Sec-WebSocket-Key` must be 16 bytes in base64."))
}

pub(super) fn describe() -> Operation {
    Operation::new("openCall", "voice", "Start a voice call")
        .description(
            "A WebSocket. Binary messages are audio: 16-bit PCM, little-endian, mono, 16 kHz from the client and 24 \
             kHz to it. Text messages are JSON with a `type`.\n\n\
             The client sends `start {sessionId?, resumeToken?, pendingRequest?, audio?, timeZone?, locale?}` within \
             ten seconds first; with `audio: \"base64\"` it gets `audio {data}` instead of bytes. Then it sends audio \
             (bytes, or `audio {data}` in base64), `text {text}`, `confirm {token, approve}`, `playback {state: \
             \"playing\", playedMs}` with what was played since the last `interrupted` or `ready`, `playback {state: \
             \"drained\"}`, `interrupt`, `stop` and `ping`.\n\n\
             The server sends `ready {sessionId, resumeToken, resumed, toolsVersion, provider, audio}`, audio, \
             `transcript {role, text, final}`, `tool_call {callId, name, args}`, `tool_result {callId, ok, error?, \
             duration, gates?}`, `confirmation_request {callId, token, tool, args, preview, reason?, expires, \
             confirmBy?, code?}`, \
             `progress {callId, text}`, `pause`, `resume`, `interrupted`, `turn_complete`, `timeout {durationSeconds, timeoutUntil, \
             farewellMessage}`, `session_end {reason, closingMessage, textResponse}`, `message {data}`, `error \
             {error}`, `going_away {inMs}` and `pong`.\n\n\
             An invalid message gets an `error`; an invalid `start` may be sent again. Another message before `start`, \
             a message over 64 KB, more than 300 frames a second, audio at more than twice real time, or too many \
             errors get an `error` and close the connection with 1008, or 1009 for the size. 1008 also refuses a \
             second call of a client that does not resume the first, and a blocked client. Other codes: 1000 call \
             ended, 1001 server shutting down, 1011 model unavailable, 1013 at capacity, 4001 taken over by another \
             connection, 4002 no `start` in time. A server at capacity answers 503 without an upgrade, another origin \
             gets 403. The client's chat is paused during a call.",
        )
        .query::<Query>()
        .response(101, "Upgraded to a WebSocket.", Vec::new())
        .errors(&[400, 426])
}
