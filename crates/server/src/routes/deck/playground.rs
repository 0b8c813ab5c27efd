//! `POST /api/deck/playground`: one call through the real gates, in a session of the operator.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode};
use quarterdeck_runtime::{
    Answer, Call, Client, ClientEvent, ConfirmationMode, Connection, PendingEnd, Reply, Session, random_hex,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Operator, Shared, operation};
use crate::app::App;
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::{Operation, envelope, reference};

/// The client of such sessions; no other client has this id.
const CLIENT: &str = "operator";
/// Longer than any handler's own deadline.
const CALL_TIMEOUT: Duration = Duration::from_secs(90);
/// Of the tool's own messages.
const MAX_MESSAGES: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaygroundRequest {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default = "default_mode")]
    mode: Mode,
    #[serde(default)]
    approve: bool,
}

struct PlaygroundResult {
    answer: Answer,
    confirmation: Option<ConfirmationRequest>,
    messages: Vec<Value>,
}

pub(super) async fn post(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let request: PlaygroundRequest = input::typed_json(&app, body).await?;
    // It continues when the client has left, so that the session is ended.
    let played = tokio::spawn(tokio::time::timeout(CALL_TIMEOUT, play(app, operator, request)));
    match played.await {
        Ok(Ok(played)) => played.map(Json),
        // The tool may have acted, so the error is not retryable.
        Ok(Err(_)) => Err(outcome_unknown("timed out")),
        Err(error) => Err(outcome_unknown(&error)),
    }
}

async fn play(app: Arc<App>, operator: Operator, request: PlaygroundRequest) -> Result<Value, ApiError> {
    let Some(id) = random_hex(12) else {
        return Err(ApiError::internal("session id not generated", &"no random numbers"));
    };
    let (client, snapshot) = (Client::anonymous(CLIENT), app.registry.snapshot());
    let session = app.orchestrator.open_as(&format!("deck_{id}"), client, request.mode, snapshot).await;
    let session = session.map_err(Refusal::Session)?;
    operator.record(&app, "playground", json!({ "sessionId": session.id(), "toolId": request.tool }));
    session.begin_turn(None);
    let connection = session.connect_with(ConfirmationMode::AnswerFirst);
    let call = Call::new(request.tool, Value::Object(request.args));
    let result = run(&session, &connection, call, request.approve).await;
    session.end(PendingEnd::with_reason("playground")).await;
    let Some(PlaygroundResult { answer, confirmation, messages }) = result else {
        return Err(outcome_unknown("no answer"));
    };
    let body = json!({
        "sessionId": session.id(), "response": *answer.response,
        "gates": answer.trace.as_ref().map(|trace| trace.explain()),
        "question": confirmation.as_ref().map(|request| &request.preview),
        "arguments": confirmation.as_ref().map(|request| &request.args), "messages": messages,
    });
    answer.mark_delivered();
    Ok(body)
}

async fn run(
    session: &Session,
    connection: &Connection,
    call: Call,
    approve: bool,
) -> Option<PlaygroundResult> {
    let mut messages = Vec::new();
    let reply = connection.submit(vec![call]).next().await;
    let mut answer = reply.and_then(Reply::into_answer)?;
    let confirmation = read_events(connection, &mut messages);
    if let Some(token) = confirmation.as_ref().and_then(|request| request.token.as_ref())
        && approve
    {
        let asked = std::mem::replace(
            &mut answer,
            session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await,
        );
        asked.mark_delivered();
        read_events(connection, &mut messages);
    }
    Some(PlaygroundResult { answer, confirmation, messages })
}

/// Collects the tool's own messages, and returns the confirmation request.
fn read_events(connection: &Connection, messages: &mut Vec<Value>) -> Option<ConfirmationRequest> {
    let mut confirmation = None;
    while let Some(event) = connection.try_next_event() {
        match event {
            ClientEvent::Message(message) if messages.len() < MAX_MESSAGES => messages.push(message),
            ClientEvent::Confirmation { request, .. } => confirmation = Some(request),
            ClientEvent::Answer { answer, .. } => answer.mark_delivered(),
            ClientEvent::Message(_) | ClientEvent::Progress { .. } | ClientEvent::End(_) => {}
        }
    }
    confirmation
}

fn outcome_unknown(error: impl std::fmt::Display) -> ApiError {
    tracing::error!(error = %error, "playground call without outcome");
    ApiError::new(ErrorType::Permanent, "The outcome of the call is unknown. Check the audit log.")
}

fn default_mode() -> Mode {
    Mode::Text
}

pub(super) fn describe() -> Operation {
    let schema = json!({
        "type": "object", "required": ["sessionId", "response", "gates", "question", "arguments", "messages"],
        "additionalProperties": false,
        "properties": {
            "sessionId": { "type": "string" },
            "response": reference("schemas", "ToolResponse"),
            "gates": { "type": ["array", "null"], "items": reference("schemas", "Gate") },
            "question": { "type": ["string", "null"], "description": "The question that the user would be asked." },
            "arguments": {
                "type": ["object", "null"],
                "description": "What the user would approve: all arguments of the call, including defaults.",
            },
            "messages": { "type": "array", "description": "The tool's own messages to the client." },
        },
    });
    let passed = json!({ "gate": "well_formed", "verdict": "passed" });
    let example = json!({
        "sessionId": "deck_1", "response": envelope::example(), "gates": [passed], "question": null, "arguments": null,
        "messages": [],
    });
    let call = json!({ "tool": "validate_email", "args": { "email": "nansen@fram.no" }, "mode": "text", "approve": true });
    operation("playCall", "Run one call through the gates")
        .description(
            "The call is real and takes effect. It runs in its own session, which belongs to `operator`. A tool that \
             needs approval returns its question unless `approve` is true.",
        )
        .body("PlaygroundCall", &[("call", call)])
        .json_response(200, "The result.", schema, Some(example))
        .errors(&[422])
}

pub(super) fn body_schema() -> Value {
    json!({
        "type": "object", "required": ["tool"], "additionalProperties": false,
        "properties": {
            "tool": { "type": "string", "description": "The tool's id." },
            "args": { "type": "object", "description": "Its arguments." },
            "mode": { "enum": ["text", "voice"], "description": "The session's mode; `text` by default." },
            "approve": { "type": "boolean", "description": "Approves the call if it needs approval." },
        },
    })
}

pub(super) fn gate_schema() -> Value {
    json!({
        "type": "object", "required": ["gate", "verdict"], "additionalProperties": false,
        "properties": {
            "gate": { "type": "string" },
            "verdict": { "enum": [
                "passed", "changed", "reserved", "replayed", "refused", "asked", "approved", "not_reached",
            ] },
            "note": { "description": "Details of the verdict." },
        },
    })
}
