//! `/healthz` is the liveness probe, `/readyz` the readiness probe.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::{Commit, StoreHealth, Table};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::openapi::schemas::one_of;
use super::openapi::{Media, Operation};
use crate::app::App;
use crate::error::ErrorBody;
use crate::model_trouble::TroubleReport;
use crate::upstream_trouble;

const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of the liveness probe.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum AliveShape {
    #[schemars(rename = "ok")]
    Ok,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Readiness {
    /// The server can take requests.
    ready: bool,
    /// The registry is loaded and locked.
    registry_locked: bool,
    /// A test row was written.
    store_writable: bool,
    /// The server is shutting down.
    draining: bool,
    /// It can take requests, and something that it needs for good answers fails.
    degraded: bool,
    /// What fails, one sentence for each.
    reasons: Vec<String>,
    /// This node among those that share a store; null for a server that is alone on its store.
    node: Option<NodeReadiness>,
}

/// How a node and its database are.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct NodeReadiness {
    name: String,
    /// The database has answered.
    reachable: bool,
    /// How long the test row took.
    latency_ms: f64,
    /// The node may write: it has renewed its row within the last ten seconds.
    may_write: bool,
    /// Another process runs under its name, and this one is done.
    fenced: bool,
    /// How long ago it renewed its row; null before it has joined.
    heartbeat_age_ms: Option<u64>,
    /// How long its last notification to itself took; null before it has come back.
    notification_lag_ms: Option<f64>,
    /// The version of the database's schema; null where the engine does not say.
    schema_version: Option<u32>,
    /// The connections to the database; null where the engine does not say.
    pool: Option<Pool>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Pool {
    max: usize,
    #[serde(rename = "inUse")]
    in_use: usize,
    waiting: usize,
}

impl NodeReadiness {
    /// `None` for a server that is alone on its store.
    fn of(app: &App, reachable: bool, took: Duration) -> Option<Self> {
        let orchestrator = &app.orchestrator;
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let health = orchestrator.store().health();
        Some(Self {
            name: orchestrator.node_name()?.to_owned(),
            reachable,
            latency_ms: ms(took),
            may_write: orchestrator.may_write(),
            fenced: orchestrator.is_fenced(),
            heartbeat_age_ms: orchestrator.heartbeat_age().map(|age| age.as_millis() as u64),
            notification_lag_ms: orchestrator.notification_health().and_then(|health| health.lag).map(ms),
            schema_version: health.as_ref().map(|health| health.schema_version),
            pool: health.map(|StoreHealth { pool, .. }| Pool {
                max: pool.max,
                in_use: pool.in_use,
                waiting: pool.waiting,
            }),
        })
    }

    /// Whether it can take requests.
    fn is_ready(&self) -> bool {
        self.may_write && !self.fenced
    }

    /// What is wrong, whether or not it can take requests.
    fn reasons(&self, app: &App) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.reachable {
            reasons.push("the database does not answer; new turns are refused until it does".to_owned());
        }
        if self.fenced {
            reasons.push(format!(
                "another process runs as node {}; give each node a name of its own, and restart this one",
                self.name
            ));
        } else if !self.may_write {
            reasons.push(
                "the node could not renew its row for ten seconds, and writes nothing until it has"
                    .to_owned(),
            );
        }
        if app.orchestrator.notification_health().is_some_and(|health| health.is_deaf) {
            reasons.push(
                "notifications do not arrive; changes of other nodes are seen within ten seconds".to_owned(),
            );
        }
        if self.pool.as_ref().is_some_and(|pool| pool.waiting > 0 && pool.in_use >= pool.max) {
            reasons.push(
                "all connections to the database are in use; raise `store.pool_size`, or add a node"
                    .to_owned(),
            );
        }
        reasons
    }
}

/// Not ready, or refused before the probe ran.
#[derive(JsonSchema)]
#[schemars(inline, untagged, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
enum NotReadyShape<'a> {
    Readiness(Readiness),
    Error(ErrorBody<'a>),
}

pub(super) async fn alive() -> &'static str {
    "ok"
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Readiness>) {
    let now = app.orchestrator.now_ms();
    // A row for each node, so that probes do not wait for each other.
    let key = app.orchestrator.node_name().map_or("readyz".to_owned(), |node| format!("readyz/{node}"));
    let probe = Commit::default().put_until(Table::Rates, key, json!({ "at": now }), Some(now + 60_000));
    let began = Instant::now();
    let commit = tokio::time::timeout(STORE_TIMEOUT, app.orchestrator.store().commit(probe)).await;
    let took = began.elapsed();
    let store_writable = matches!(commit, Ok(Ok(_)));
    let registry_locked = app.registry.is_locked();
    let draining = app.admission.is_draining();
    // Where the registry follows a folder, it is never locked.
    let has_registry = registry_locked || app.registry.is_followed();
    let node = NodeReadiness::of(&app, store_writable, took);
    let has_node = node.as_ref().is_none_or(NodeReadiness::is_ready);
    let ready = store_writable && has_registry && has_node && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // A model that fails is no reason to take the server out of service: tools, sessions and approvals work, and
    // another server would ask the same model.
    let trouble = app.text.model_trouble();
    let mut reasons: Vec<_> = trouble.iter().map(|trouble| TroubleReport::new(trouble).reason()).collect();
    // Nor is a server of some tools: the others work.
    reasons.extend(app.operations.upstreams().iter().flat_map(upstream_trouble::reasons));
    reasons.extend(node.iter().flat_map(|node| node.reasons(&app)));
    let degraded = !reasons.is_empty();
    (status, Json(Readiness { ready, registry_locked, store_writable, draining, degraded, reasons, node }))
}

pub(super) fn describe_alive() -> Operation {
    let text = Media::new::<AliveShape>("text/plain").example("ok".into());
    Operation::new("getHealth", "operation", "Liveness probe").response(
        200,
        "The process is alive.",
        vec![text],
    )
}

pub(super) fn describe_ready() -> Operation {
    let ready = json!({
        "ready": true, "registryLocked": true, "storeWritable": true, "draining": false, "degraded": true,
        "reasons": [
            "model openai/gpt failing since 2026-11-16T09:00:00Z (unreachable, 3 in a row); no model answers",
            "MCP server weather disconnected since 2026-11-16T09:12:00Z; 3 tools are unavailable",
        ],
        "node": {
            "name": "one", "reachable": true, "latencyMs": 1.8, "mayWrite": true, "fenced": false, "heartbeatAgeMs": 1_400,
            "notificationLagMs": 0.7, "schemaVersion": 1, "pool": { "max": 16, "inUse": 2, "waiting": 0 },
        },
    });
    let not = json!({
        "ready": false, "registryLocked": true, "storeWritable": false, "draining": false, "degraded": false,
        "reasons": [], "node": null,
    });
    Operation::new("getReadiness", "operation", "Readiness probe")
        .json_response::<Readiness>(200, "Ready, perhaps degraded.", Some(ready))
        .json_response::<NotReadyShape<'_>>(503, "Not ready.", Some(not))
}
