//! `POST /api/deck/playground`: one call through the real gates, in a session of the operator's own.

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

/// Whom such sessions belong to. Nobody else's id can be this.
const CLIENT: &str = "operator";
/// How long a call may take. Handlers have deadlines of their own, which are shorter.
const PATIENCE: Duration = Duration::from_secs(90);
/// How many of a tool's messages are shown.
const MOST_MESSAGES: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default = "in_writing")]
    mode: Mode,
    #[serde(default)]
    approve: bool,
}

/// What came of it.
struct Came {
    answer: Answer,
    question: Option<ConfirmationRequest>,
    messages: Vec<Value>,
}

pub(super) async fn post(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let asked: Asked = input::typed(&app, body).await?;
    // It goes on when the page is gone, so that the session has its end.
    let played = tokio::spawn(tokio::time::timeout(PATIENCE, play(app, operator, asked)));
    match played.await {
        Ok(Ok(played)) => played.map(Json),
        // The tool may have done something, so nobody is invited to do it again.
        Ok(Err(_)) => Err(unknown("the call took too long")),
        Err(error) => Err(unknown(&error)),
    }
}

async fn play(app: Arc<App>, operator: Operator, asked: Asked) -> Result<Value, ApiError> {
    let Some(id) = random_hex(12) else {
        return Err(ApiError::internal("the playground has no session", &"no random numbers"));
    };
    let (client, snapshot) = (Client::anonymous(CLIENT), app.registry.snapshot());
    let session = app.orchestrator.open_as(&format!("deck_{id}"), client, asked.mode, snapshot).await;
    let session = session.map_err(Refusal::Session)?;
    operator.did(&app, "playground", json!({ "sessionId": session.id(), "toolId": asked.tool }));
    session.begin_turn(None);
    let connection = session.connect_with(ConfirmationMode::AnswerFirst);
    let call = Call::new(asked.tool, Value::Object(asked.args));
    let came = run(&session, &connection, call, asked.approve).await;
    session.end(PendingEnd::with_reason("playground")).await;
    let Some(Came { answer, question, messages }) = came else {
        return Err(unknown("a call was not answered"));
    };
    let shown = json!({
        "sessionId": session.id(), "response": *answer.response,
        "gates": answer.trace.as_ref().map(|trace| trace.explain()),
        "question": question.as_ref().map(|question| &question.preview),
        "arguments": question.as_ref().map(|question| &question.args), "messages": messages,
    });
    answer.mark_delivered();
    Ok(shown)
}

async fn run(session: &Session, connection: &Connection, call: Call, approve: bool) -> Option<Came> {
    let mut messages = Vec::new();
    let reply = connection.submit(vec![call]).next().await;
    let mut answer = reply.and_then(Reply::into_answer)?;
    let question = read(connection, &mut messages);
    if let Some(token) = question.as_ref().and_then(|question| question.token.as_ref())
        && approve
    {
        let asked = std::mem::replace(
            &mut answer,
            session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await,
        );
        asked.mark_delivered();
        read(connection, &mut messages);
    }
    Some(Came { answer, question, messages })
}

/// What was said beside the answer: a tool's messages, and the question to the person.
fn read(connection: &Connection, messages: &mut Vec<Value>) -> Option<ConfirmationRequest> {
    let mut question = None;
    while let Some(event) = connection.try_next_event() {
        match event {
            ClientEvent::Message(message) if messages.len() < MOST_MESSAGES => messages.push(message),
            ClientEvent::Confirmation { request, .. } => question = Some(request),
            ClientEvent::Answer { answer, .. } => answer.mark_delivered(),
            ClientEvent::Message(_) | ClientEvent::Progress { .. } | ClientEvent::End(_) => {}
        }
    }
    question
}

/// Nobody knows what came of it.
fn unknown(why: impl std::fmt::Display) -> ApiError {
    tracing::error!(error = %why, "a call in the playground has no outcome");
    ApiError::new(
        ErrorType::Permanent,
        "Whether the call did something is not known. The audit trail may tell.",
    )
}

fn in_writing() -> Mode {
    Mode::Text
}

pub(super) fn described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["sessionId", "response", "gates", "question", "arguments", "messages"],
        "additionalProperties": false,
        "properties": {
            "sessionId": { "type": "string" },
            "response": reference("schemas", "ToolResponse"),
            "gates": { "type": ["array", "null"], "items": reference("schemas", "Gate") },
            "question": { "type": ["string", "null"], "description": "What a person would be asked." },
            "arguments": {
                "type": ["object", "null"],
                "description": "What they would approve: every argument of the stored call in full, defaults included.",
            },
            "messages": { "type": "array", "description": "What the tool has said to the page." },
        },
    });
    let passed = json!({ "gate": "well_formed", "verdict": "passed" });
    let example = json!({
        "sessionId": "deck_1", "response": envelope::example(), "gates": [passed], "question": null, "arguments": null,
        "messages": [],
    });
    let call = json!({ "tool": "validate_email", "args": { "email": "nansen@fram.no" }, "mode": "text", "approve": true });
    operation("playCall", "Run one call through the gates")
        .about(
            "The call is real: what the tool does is done. It runs in a session of its own that belongs to `operator`. A \
             tool that needs a person's word answers with its question unless `approve` is true.",
        )
        .takes_body("PlaygroundCall", &[("call", call)])
        .gives_json(200, "What came of it.", schema, Some(example))
        .refuses(&[422])
}

/// The body, for the shared schemas.
pub(super) fn body_schema() -> Value {
    json!({
        "type": "object", "required": ["tool"], "additionalProperties": false,
        "properties": {
            "tool": { "type": "string", "description": "The tool's id." },
            "args": { "type": "object", "description": "Its arguments." },
            "mode": { "enum": ["text", "voice"], "description": "As if it was asked for like this; `text` if absent." },
            "approve": { "type": "boolean", "description": "Whether the operator approves it, should a person be asked." },
        },
    })
}

/// What a gate said, for the shared schemas.
pub(super) fn gate_schema() -> Value {
    json!({
        "type": "object", "required": ["gate", "verdict"], "additionalProperties": false,
        "properties": {
            "gate": { "type": "string" },
            "verdict": { "enum": [
                "passed", "changed", "reserved", "replayed", "refused", "asked", "approved", "not_reached",
            ] },
            "note": { "description": "What exactly." },
        },
    })
}
