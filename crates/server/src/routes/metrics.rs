//! `GET /metrics`: JSON, or the Prometheus text format. Operators only.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use quarterdeck_alerts::MessageCounts;
use quarterdeck_contracts::ErrorType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::openapi::envelope::nullable_object;
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
    /// By provider/model.
    models: BTreeMap<String, ModelTotalsShape>,
    /// By provider/model.
    voice: BTreeMap<String, VoiceTotalsShape>,
    versions: BTreeMap<String, ToolTotalsShape>,
    sessions: Numbers,
    audit: Numbers,
    /// Requests of MCP clients.
    mcp: McpTotalsShape,
    /// By name of the MCP server.
    upstreams: BTreeMap<String, UpstreamTotalsShape>,
    #[schemars(flatten)]
    process: ProcessShape,
}

/// Of the process itself.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct ProcessShape {
    connections: Numbers,
    alarms: AlarmNumbersShape,
    memory: Numbers,
    /// This node among those that share a store, or null.
    #[schemars(schema_with = "nullable_object")]
    node: Option<serde_json::Value>,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct AlarmNumbersShape {
    /// How many fire.
    firing: u64,
    /// What has become of messages about them.
    messages: Numbers,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct ToolTotalsShape {
    calls: u64,
    errors: u64,
}

/// The requests to a text model since the start. Times, in milliseconds, are of the last thousand.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct ModelTotalsShape {
    requests: u64,
    answered: u64,
    cancelled: u64,
    /// Turns in which it was asked in the place of a model that had failed.
    stood_in: u64,
    /// By kind.
    errors: Numbers,
    first_token: Numbers,
    tokens: Numbers,
    /// Whether the last request failed; absent for a model that is no longer configured.
    #[schemars(default)]
    is_failing: bool,
}

/// The spoken answers of a voice model since the start.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct VoiceTotalsShape {
    answers: u64,
    /// Milliseconds from the end of the user's speech to the first audio, of the last thousand answers.
    first_audio: Numbers,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct McpTotalsShape {
    /// By method and outcome.
    requests: BTreeMap<String, Numbers>,
}

/// The calls to an MCP server elsewhere since the start. Times, in milliseconds, are of the last thousand.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct UpstreamTotalsShape {
    /// By outcome.
    calls: Numbers,
    /// By kind.
    refused_requests: Numbers,
    latency: Numbers,
    /// Absent, like the two below, for a server that is no longer configured.
    #[schemars(default)]
    state: String,
    #[schemars(default)]
    restarts: u64,
    #[schemars(default)]
    drifted_tools: u64,
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
    if is_prometheus {
        let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
        return Ok((kind, prometheus_text(&app)).into_response());
    }
    let metrics = app.orchestrator.metrics();
    let upstreams = app.operations.upstreams();
    let mut numbers = metrics.json();
    let memory = app.text.memory_use();
    numbers["upstreams"] = metrics.upstreams_json(&upstreams);
    numbers["node"] = app.orchestrator.node_metrics_json();
    for model in app.text.models() {
        // One that was never asked has no counters.
        if let Some(counters) = numbers["models"].get_mut(&model.name) {
            counters["isFailing"] = model.failing.is_some().into();
        }
    }
    numbers["connections"] = json!({ "refused": app.admission.refused_connections() });
    numbers["alarms"] = alarm_numbers(&app);
    numbers["memory"] = json!({ "answers": memory.answers, "conversations": memory.conversations });
    Ok(Json(numbers).into_response())
}

/// All series, as Prometheus and the alert rules read them.
pub(crate) fn prometheus_text(app: &App) -> String {
    let metrics = app.orchestrator.metrics();
    metrics.set_upstreams(&app.operations.upstreams());
    set_own_metrics(app);
    set_alarm_metrics(app);
    app.orchestrator.export_node_metrics();
    metrics.prometheus()
}

fn alarm_numbers(app: &App) -> serde_json::Value {
    let messenger = app.operations.messenger.as_ref();
    let MessageCounts { delivered, failed, given_up, waiting } =
        messenger.map(|messenger| messenger.counts()).unwrap_or_default();
    json!({
        "firing": app.count_firing_alarms(),
        "messages": { "delivered": delivered, "failed": failed, "givenUp": given_up, "waiting": waiting },
    })
}

fn set_alarm_metrics(app: &App) {
    let metrics = app.orchestrator.metrics();
    let help = "Alarms that fire.";
    metrics.set_gauge("quarterdeck_alarms_firing", help, app.count_firing_alarms() as f64);
    let Some(messenger) = &app.operations.messenger else { return };
    let MessageCounts { delivered, failed, given_up, .. } = messenger.counts();
    let help = "Messages about alarms that the webhook has taken.";
    metrics.set_counter("quarterdeck_alarm_messages_delivered_total", help, delivered);
    let help = "Attempts to reach the webhook that failed.";
    metrics.set_counter("quarterdeck_alarm_messages_failed_total", help, failed);
    let help = "Messages about alarms that were given up.";
    metrics.set_counter("quarterdeck_alarm_messages_given_up_total", help, given_up);
}

/// The server's own, which it counts itself.
fn set_own_metrics(app: &App) {
    let (metrics, memory) = (app.orchestrator.metrics(), app.text.memory_use());
    let help = "Connections refused by the limit per address.";
    metrics.set_counter("quarterdeck_connections_refused_total", help, app.admission.refused_connections());
    for model in app.text.models() {
        metrics.set_model_failing(&model.name, model.failing.is_some());
    }
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
        "models": { "openai/gpt": {
            "requests": 41, "answered": 38, "cancelled": 1, "stoodIn": 0, "errors": { "rate_limited": 2 },
            "firstToken": { "avg": 640, "p50": 590, "p95": 1210, "p99": 2400 },
            "tokens": { "input": 401200, "cached": 322000, "uncached": 79200, "cacheWrite": 0, "output": 9100 },
            "isFailing": false,
        } },
        "voice": { "gemini/live": {
            "answers": 212, "firstAudio": { "avg": 712.4, "p50": 655, "p95": 1320, "p99": 2210 },
        } },
        "versions": { "1.0.3fa9c2e1": { "calls": 120, "errors": 2, "p95": 41, "tokensAverage": 80 } },
        "mcp": { "requests": { "tools/list": { "ok": 12 }, "tools/call": { "ok": 310, "tool_error": 4 } } },
        "sessions": { "active": 3, "text": 2, "voice": 1, "total": 41 },
        "audit": { "lostLines": 0 },
        "upstreams": { "weather": {
            "calls": { "answered": 409, "timed_out": 3 }, "refusedRequests": { "sampling": 1 },
            "latency": { "avg": 97.0, "p50": 84, "p95": 310, "p99": 620 },
            "state": "connected", "restarts": 1, "driftedTools": 0,
        } },
        "connections": { "refused": 0 },
        "alarms": { "firing": 0, "messages": { "delivered": 0, "failed": 0, "givenUp": 0, "waiting": 0 } },
        "memory": { "answers": 5120, "conversations": 204800 },
        "node": {
            "name": "one", "mayWrite": true, "heartbeatAgeMs": 1400,
            "leases": { "taken": 310, "released": 297, "lost": 0, "taken_over": 2 },
            "forwardedRequests": { "answered": 14, "unreachable": 1, "lost": 0 },
            "notifications": { "received": { "block": 2, "node": 61 }, "missed": 0, "resyncs": 1, "lagMs": 0.7, "isDeaf": false },
            "store": { "poolMax": 16, "poolInUse": 2, "poolWaiting": 0, "retries": 3, "unknownOutcomes": 0 },
        },
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
