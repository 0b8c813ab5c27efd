//! `POST /api/deck/playground`: one call through the real gates, in a session of the operator.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::handler::HandlerFault;
use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, ToolResponse};
use quarterdeck_runtime::{
    Answer, Call, Client, ClientEvent, ConfirmationDecision, ConfirmationMode, Connection, DecisionSource,
    PendingEnd, Reply, Session, random_hex,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Operator, Shared, operation};
use crate::app::App;
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;
use crate::routes::openapi::envelope::{self, EnvelopeShape, GateShape, nullable_object};

/// The client of such sessions; no other client has this id.
const CLIENT: &str = "operator";
/// Longer than any handler's own deadline.
const CALL_TIMEOUT: Duration = Duration::from_secs(90);
/// Of the tool's own messages.
const MAX_MESSAGES: usize = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PlaygroundCall")]
struct PlaygroundRequest {
    /// The tool's id.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    args: Map<String, Value>,
    /// The session's mode; `text` by default.
    #[serde(default = "default_mode")]
    mode: Mode,
    /// Approves the call if it needs approval.
    #[serde(default)]
    approve: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct PlaygroundResponse {
    session_id: String,
    #[schemars(with = "EnvelopeShape")]
    response: Arc<ToolResponse>,
    #[schemars(with = "Option<Vec<GateShape>>")]
    gates: Option<Value>,
    /// The question that the user would be asked.
    question: Option<String>,
    /// Why they would be asked, where the tool asks only at times.
    reason: Option<String>,
    /// What the user would approve: all arguments of the call, including defaults.
    #[schemars(schema_with = "nullable_object")]
    arguments: Option<Value>,
    /// The tool's own messages to the client.
    messages: Vec<Value>,
    /// What went wrong inside the handler: what it threw, where, and what to do. Operators see it, and no other client.
    fault: Option<HandlerFault>,
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
) -> Result<Json<PlaygroundResponse>, ApiError> {
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

async fn play(
    app: Arc<App>,
    operator: Operator,
    request: PlaygroundRequest,
) -> Result<PlaygroundResponse, ApiError> {
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
    let reason = confirmation.as_ref().and_then(|request| request.reason.clone());
    let (question, arguments) = confirmation.map(|request| (request.preview, request.args)).unzip();
    let body = PlaygroundResponse {
        session_id: session.id().to_owned(),
        response: answer.response.clone(),
        gates: answer.trace.as_ref().map(|trace| json!(trace.explain())),
        question,
        reason,
        arguments,
        messages,
        fault: session.take_fault().filter(|_| !answer.response.is_ok()),
    };
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
        let decision = ConfirmationDecision::new(ConfirmationAnswer::Approve, DecisionSource::Operator);
        let resolved = session.resolve_confirmation(token.expose(), decision).await;
        let asked = std::mem::replace(&mut answer, resolved);
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
            ClientEvent::Message(_)
            | ClientEvent::Progress { .. }
            | ClientEvent::Partial { .. }
            | ClientEvent::End(_)
            | ClientEvent::Blocked { .. } => {}
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
    let passed = json!({ "gate": "well_formed", "verdict": "passed" });
    let example = json!({
        "sessionId": "deck_1", "response": envelope::example(), "gates": [passed], "question": null, "reason": null, "arguments": null,
        "messages": [], "fault": null,
    });
    let args = json!({ "email": "nansen@fram.no" });
    let call = json!({ "tool": "validate_email", "args": args, "mode": "text", "approve": true });
    operation("playCall", "Run one call through the gates")
        .description(
            "The call is real and takes effect. It runs in its own session, which belongs to `operator`. A tool that \
             needs approval returns its question unless `approve` is true.",
        )
        .body::<PlaygroundRequest>(&[("call", call)])
        .json_response::<PlaygroundResponse>(200, "The result.", Some(example))
        .errors(&[422])
}
