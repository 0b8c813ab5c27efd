//! The tools that both agents have.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::HandlerAnswer;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_runtime::{Orchestrator, Registry, RuntimeParts};
use quarterdeck_testkit::new_store;
use serde_json::{Value, json};

use super::case::Runs;
use crate::world::{ManualClock, registry_of};

pub(crate) fn registry(runs: &Runs) -> Arc<Registry> {
    let modes = json!(["text", "voice"]);
    let reads = json!({
        "category": "retrieval", "sideEffects": "read_only", "idempotent": true, "allowedModes": modes,
    });
    let steers = json!({ "control": true, "sideEffects": "none", "allowedModes": modes });
    let tools = [
        ("look", reads.clone()),
        ("slow_look", reads),
        ("book", json!({ "allowedModes": modes })),
        ("slow_book", json!({ "allowedModes": modes })),
        ("pay", json!({ "allowedModes": modes, "requiresConfirmation": true })),
        (
            "draw",
            json!({
                "allowedModes": modes, "requiresConfirmation": "policy",
                "confirmWhen": { "notRequestedThisTurn": true }, "requestedBy": { "en": ["turn 1"] },
            }),
        ),
        ("fail", json!({ "allowedModes": modes })),
        ("write_only", json!({ "allowedModes": ["text"], "sideEffects": "none" })),
        ("speak_only", json!({ "allowedModes": ["voice"], "sideEffects": "none" })),
        ("leave", steers.clone()),
        ("hide", steers.clone()),
        ("remind", steers),
    ];
    Arc::new(registry_of(&tools, Arc::new(Host(runs.clone()))))
}

/// An orchestrator whose clock a test moves.
pub(crate) fn orchestrator() -> (Orchestrator, Arc<ManualClock>) {
    let clock = ManualClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800));
    let parts = RuntimeParts { clock: clock.clone(), ..RuntimeParts::new(new_store()) };
    (Orchestrator::new(parts), clock)
}

struct Host(Runs);

struct Tool {
    id: String,
    runs: Runs,
}

impl HandlerHost for Host {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let id = handler.metadata.tool_id.to_string();
        Ok(Arc::new(Tool { id, runs: self.0.clone() }))
    }
}

impl Handler for Tool {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        self.runs.count(&self.id, &json!({ "what": args["what"], "turn": context.facts().session.turn }));
        let answer = answer(&self.id, &args["what"]);
        let pause = Duration::from_secs(if self.id.starts_with("slow") { 3 } else { 0 });
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            Ok(HandlerAnswer::parse(answer).unwrap())
        })
    }
}

fn answer(tool: &str, what: &Value) -> Value {
    let done = |intents: Value| json!({ "ok": true, "data": { "did": what }, "intents": intents });
    match tool {
        "look" | "slow_look" => json!({ "ok": true, "data": { "results": [what] } }),
        "fail" => json!({ "ok": false, "error": {
            "type": "CONFLICT", "message": "It is taken.", "retryable": false, "suggestion": "Try tomorrow.",
            "partialSideEffects": false, "details": { "taken": what },
        } }),
        "leave" => done(json!([{ "type": "END_VOICE_SESSION", "after": "current_turn" }])),
        "hide" => done(json!([
            { "type": "SUPPRESS_AUDIO", "value": true }, { "type": "SUPPRESS_TRANSCRIPT", "value": true },
        ])),
        "remind" => done(json!([{ "type": "SET_PENDING_MESSAGE", "message": "The shop closes at six." }])),
        _ => done(json!([])),
    }
}
