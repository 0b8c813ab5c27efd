//! `GET /metrics`: JSON, or the Prometheus text format. Operators only.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::host_health_json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::openapi::{Media, Operation};
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::input::QueryParams;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct MetricsQuery {
    /// The format. It takes precedence over `Accept`.
    #[schemars(extend("enum" = ["json", "prometheus"], "example" = "json"))]
    format: Option<String>,
}

type Numbers = BTreeMap<String, f64>;

/// The metrics, most of which the runtime writes.
#[derive(JsonSchema)]
#[schemars(rename = "Metrics", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct MetricsShape {
    response_sizes: BTreeMap<String, Numbers>,
    response_tokens: BTreeMap<String, Numbers>,
    latency: BTreeMap<String, Numbers>,
    context: Numbers,
    loop_detection: Numbers,
    tools: BTreeMap<String, ToolTotalsShape>,
    versions: BTreeMap<String, ToolTotalsShape>,
    sessions: Numbers,
    audit: Numbers,
    handlers: Numbers,
    connections: Numbers,
    memory: Numbers,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct ToolTotalsShape {
    calls: u64,
    errors: u64,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<MetricsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !caller.is_operator {
        return Err(ApiError::new(
            ErrorType::Auth,
            "Operators only: send the admin token as a bearer token.",
        ));
    }
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    let is_prometheus = match query.format.as_deref() {
        Some("prometheus") => true,
        Some("json") => false,
        Some(_) => return Err(ApiError::validation("`format` is `json` or `prometheus`.")),
        None => accepts.contains("text/plain") || accepts.contains("openmetrics"),
    };
    let metrics = app.orchestrator.metrics();
    let health = app.registry.host_health();
    if is_prometheus {
        let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
        metrics.set_host_health(&health);
        set_own_metrics(&app);
        return Ok((kind, metrics.prometheus()).into_response());
    }
    let mut numbers = metrics.json();
    let memory = app.text.memory_use();
    numbers["handlers"] = host_health_json(&health);
    numbers["connections"] = json!({ "refused": app.admission.refused_connections() });
    numbers["memory"] = json!({ "answers": memory.answers, "conversations": memory.conversations });
    Ok(Json(numbers).into_response())
}

/// The server's own, which it counts itself.
fn set_own_metrics(app: &App) {
    let (metrics, memory) = (app.orchestrator.metrics(), app.text.memory_use());
    let help = "Connections refused by the limit per address.";
    metrics.set_counter("quarterdeck_connections_refused_total", help, app.admission.refused_connections());
    let help = "Bytes of answers not read yet.";
    metrics.set_gauge("quarterdeck_answer_bytes", help, memory.answers as f64);
    let help = "Bytes of conversations in memory.";
    metrics.set_gauge("quarterdeck_conversation_bytes", help, memory.conversations as f64);
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "responseSizes": { "kb_search": { "p50": 320, "p95": 890, "p99": 1450 } },
        "responseTokens": { "kb_search": { "avg": 80, "p95": 225 } },
        "latency": { "kb_search": { "avg": 14.2, "p50": 9, "p95": 41, "p99": 77 } },
        "context": {
            "sessionInitTokens": 12500, "systemPromptTokens": 3200, "toolDeclTokens": 9300, "peakTokens": 18100,
        },
        "loopDetection": { "activeSessions": 3, "totalTurnsTracked": 47 },
        "tools": { "kb_search": { "calls": 120, "errors": 2, "avgDuration": 14.2, "cacheHits": 3 } },
        "versions": { "1.0.3fa9c2e1": { "calls": 120, "errors": 2, "p95": 41, "tokensAverage": 80 } },
        "sessions": { "active": 3, "text": 2, "voice": 1, "total": 41 },
        "audit": { "lostLines": 0 },
        "handlers": { "stuckThreads": 0, "quarantined": 0, "quarantinesTotal": 0 },
        "connections": { "refused": 0 },
        "memory": { "answers": 5120, "conversations": 204800 },
    });
    let json = Media::new::<MetricsShape>("application/json").example(example);
    let content = vec![json, Media::new::<String>("text/plain")];
    Operation::new("getMetrics", "operation", "Get the metrics")
        .description(
            "JSON, or the Prometheus text format if `format` or `Accept` asks for it. Other machines need the admin \
             token.",
        )
        .with("security", json!([{ "admin": [] }, {}]))
        .query::<MetricsQuery>()
        .response(200, "The metrics.", content)
        .errors(&[400])
}
