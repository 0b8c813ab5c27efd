//! `GET /api/deck/overview`: the tools and how they fare, who is here, and what is running.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::{LoadedTool, ToolCounters};
use serde_json::{Value, json};

use super::{Operator, Shared, operation};
use crate::deck::Lately;
use crate::routes::openapi::Operation;

/// From how many calls on a share of failures means something.
const ENOUGH: u64 = 5;

pub(super) async fn get(State(app): Shared, _: Operator) -> Json<Value> {
    let snapshot = app.registry.snapshot();
    let figures = app.orchestrator.metrics().counters();
    let lately = app.series.lately(&figures);
    let tools: Vec<Value> = snapshot
        .tools()
        .map(|tool| {
            let id = tool.metadata().tool_id.as_str();
            let counted = figures.tools.iter().find(|(known, _)| **known == *id);
            let counted = counted.map(|(_, counted)| *counted).unwrap_or_default();
            row(tool, counted, lately.get(id).copied().unwrap_or_default())
        })
        .collect();
    Json(json!({
        "now": app.orchestrator.now_ms(),
        "registry": {
            "version": snapshot.version(), "commit": snapshot.commit(), "tools": snapshot.len(),
            "isLocked": app.registry.is_locked(),
        },
        "sessions": {
            "active": figures.text + figures.voice, "text": figures.text, "voice": figures.voice,
            "total": figures.total, "turns": figures.turns,
        },
        "models": { "text": app.text.model(), "voice": app.voice.as_ref().map(|voice| voice.model()) },
        "audit": { "isKept": app.operations.audit.is_some(), "lostLines": figures.audit_lost },
        "tools": tools,
    }))
}

fn row(tool: &LoadedTool, counted: ToolCounters, lately: Lately) -> Value {
    let metadata = tool.metadata();
    let mut row = json!({
        "id": metadata.tool_id, "version": metadata.version, "category": metadata.category,
        "sideEffects": metadata.side_effects, "summary": tool.summary(),
        "requiresConfirmation": metadata.requires_confirmation, "latencyBudgetMs": metadata.latency_budget_ms,
        "health": health(counted, lately, metadata.latency_budget_ms),
        "lately": { "calls": lately.calls, "errors": lately.errors },
    });
    row["figures"] = json!(counted);
    row
}

/// How a tool fares, in one word.
fn health(counted: ToolCounters, lately: Lately, budget_ms: u64) -> &'static str {
    match lately {
        Lately { calls: 0, .. } => "idle",
        // One in five: by then people notice.
        Lately { calls, errors } if errors * 5 >= calls => {
            if calls < ENOUGH {
                "unclear"
            } else {
                "failing"
            }
        }
        _ if counted.p95 > budget_ms as f64 => "slow",
        _ => "well",
    }
}

pub(super) fn described() -> Operation {
    let count = json!({ "type": "integer", "minimum": 0 });
    let tool = json!({
        "type": "object", "required": ["id", "version", "category", "health", "lately", "figures"],
        "properties": {
            "id": { "type": "string" }, "version": { "type": "string" },
            "category": { "enum": ["retrieval", "action", "utility"] },
            "health": {
                "enum": ["idle", "well", "slow", "failing", "unclear"],
                "description": "Of the last hour: not called; fine; p95 over its budget; one call in five failed; or did \
                                so, but of too few to tell.",
            },
            "lately": {
                "type": "object", "required": ["calls", "errors"], "description": "Within the last hour.",
                "properties": { "calls": count, "errors": count },
            },
            "figures": {
                "type": "object",
                "description": "Counts since the start; milliseconds and tokens of the last thousand answers.",
                "additionalProperties": { "type": "number" },
            },
        },
    });
    let schema = json!({
        "type": "object", "required": ["now", "registry", "sessions", "models", "audit", "tools"],
        "properties": {
            "now": { "type": "integer", "description": "Milliseconds since 1970." },
            "registry": {
                "type": "object", "required": ["version", "commit", "tools", "isLocked"],
                "properties": {
                    "version": { "type": "string" }, "commit": { "type": ["string", "null"] }, "tools": count,
                    "isLocked": { "type": "boolean" },
                },
            },
            "sessions": { "type": "object", "additionalProperties": count },
            "models": {
                "type": "object", "required": ["text", "voice"],
                "properties": { "text": { "type": "string" }, "voice": { "type": ["string", "null"] } },
            },
            "audit": {
                "type": "object", "required": ["isKept", "lostLines"],
                "properties": { "isKept": { "type": "boolean" }, "lostLines": count },
            },
            "tools": { "type": "array", "items": tool },
        },
    });
    operation("getOverview", "The tools and how they fare").gives_json(200, "All at a glance.", schema, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_what_an_operator_would_say() {
        let of = |calls, errors, p95| {
            health(ToolCounters { p95, ..ToolCounters::default() }, Lately { calls, errors }, 100)
        };
        assert_eq!(of(0, 0, 500.0), "idle");
        assert_eq!(of(4, 4, 1.0), "unclear", "too few to tell, but nobody would say well");
        assert_eq!(of(4, 0, 1.0), "well");
        assert_eq!(of(10, 2, 1.0), "failing");
        assert_eq!(of(10, 1, 100.5), "slow");
        assert_eq!(of(10, 1, 100.0), "well");
    }
}
