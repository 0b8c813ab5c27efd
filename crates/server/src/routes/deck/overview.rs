//! `GET /api/deck/overview`: tool health, sessions and models.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::{LoadedTool, ToolCounters};
use serde_json::{Value, json};

use super::{Operator, Shared, operation};
use crate::deck::RecentCalls;
use crate::routes::openapi::Operation;

/// With fewer calls the error rate means little.
const MIN_CALLS: u64 = 5;

pub(super) async fn get(State(app): Shared, _: Operator) -> Json<Value> {
    let snapshot = app.registry.snapshot();
    let counters = app.orchestrator.metrics().counters();
    let recent = app.series.recent_calls(&counters);
    let tools: Vec<Value> = snapshot
        .tools()
        .map(|tool| {
            let id = tool.metadata().tool_id.as_str();
            let tool_counters = counters.tools.iter().find(|(known, _)| **known == *id);
            let tool_counters = tool_counters.map(|(_, counters)| *counters).unwrap_or_default();
            row(tool, tool_counters, recent.get(id).copied().unwrap_or_default())
        })
        .collect();
    Json(json!({
        "now": app.orchestrator.now_ms(),
        "registry": {
            "version": snapshot.version(), "commit": snapshot.commit(), "tools": snapshot.len(),
            "isLocked": app.registry.is_locked(),
        },
        "sessions": {
            "active": counters.text + counters.voice, "text": counters.text, "voice": counters.voice,
            "total": counters.total, "turns": counters.turns,
        },
        "models": { "text": app.text.model(), "voice": app.voice.as_ref().map(|voice| voice.model()) },
        "audit": { "isKept": app.operations.audit.is_some(), "lostLines": counters.audit_lost },
        "tools": tools,
    }))
}

fn row(tool: &LoadedTool, counters: ToolCounters, recent: RecentCalls) -> Value {
    let metadata = tool.metadata();
    let mut row = json!({
        "id": metadata.tool_id, "version": metadata.version, "category": metadata.category,
        "sideEffects": metadata.side_effects, "summary": tool.summary(),
        "requiresConfirmation": metadata.requires_confirmation, "latencyBudgetMs": metadata.latency_budget_ms,
        "health": health(counters, recent, metadata.latency_budget_ms),
        "lately": { "calls": recent.calls, "errors": recent.errors },
    });
    row["figures"] = json!(counters);
    row
}

fn health(counters: ToolCounters, recent: RecentCalls, budget_ms: u64) -> &'static str {
    match recent {
        RecentCalls { calls: 0, .. } => "idle",
        // One in five.
        RecentCalls { calls, errors } if errors * 5 >= calls => {
            if calls < MIN_CALLS {
                "unclear"
            } else {
                "failing"
            }
        }
        _ if counters.p95 > budget_ms as f64 => "slow",
        _ => "well",
    }
}

pub(super) fn describe() -> Operation {
    let count = json!({ "type": "integer", "minimum": 0 });
    let tool = json!({
        "type": "object", "required": ["id", "version", "category", "health", "lately", "figures"],
        "properties": {
            "id": { "type": "string" }, "version": { "type": "string" },
            "category": { "enum": ["retrieval", "action", "utility"] },
            "health": {
                "enum": ["idle", "well", "slow", "failing", "unclear"],
                "description": "In the last hour: not called; healthy; p95 over its latency budget; at least one call in \
                                five failed; or failed with too few calls to judge.",
            },
            "lately": {
                "type": "object", "required": ["calls", "errors"], "description": "Within the last hour.",
                "properties": { "calls": count, "errors": count },
            },
            "figures": {
                "type": "object",
                "description": "Counters since the start; milliseconds and tokens of the last thousand answers.",
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
    operation("getOverview", "Get the tool overview").json_response(200, "The overview.", schema, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_recent_calls_and_latency() {
        let of = |calls, errors, p95| {
            health(ToolCounters { p95, ..ToolCounters::default() }, RecentCalls { calls, errors }, 100)
        };
        assert_eq!(of(0, 0, 500.0), "idle");
        assert_eq!(of(4, 4, 1.0), "unclear", "too few calls to judge");
        assert_eq!(of(4, 0, 1.0), "well");
        assert_eq!(of(10, 2, 1.0), "failing");
        assert_eq!(of(10, 1, 100.5), "slow");
        assert_eq!(of(10, 1, 100.0), "well");
    }
}
