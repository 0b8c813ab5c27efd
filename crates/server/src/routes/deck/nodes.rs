//! `GET /api/deck/nodes`: the nodes that share the store.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::NodeView;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Operator, Shared, operation, store_error};
use crate::error::ApiError;
use crate::routes::openapi::Operation;

#[derive(Serialize, JsonSchema)]
pub(super) struct NodeList {
    /// By name; empty for a server that is alone on its store.
    nodes: Vec<DeckNode>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeckNode {
    name: String,
    /// Where the other nodes reach it.
    address: String,
    version: String,
    state: NodeState,
    /// Whether it answers this request.
    is_self: bool,
    /// Sessions in its memory, calls included.
    sessions: u64,
    calls: u64,
    /// How long its row has been unchanged, as this node has seen it. It is renewed every three seconds.
    unchanged_ms: u64,
    /// How long a notification took to reach it lately, or null where none has.
    lag_ms: Option<u64>,
    /// When its process began, by its own clock, in milliseconds since 1970.
    started_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum NodeState {
    Alive,
    /// Its row has been unchanged for a while.
    Late,
    /// Unchanged for so long that other nodes take over its sessions.
    Dead,
    /// This one, which may not write at present.
    Stopped,
}

/// Two renewals are missing.
const LATE_AFTER_MS: u64 = 7_000;

impl NodeState {
    fn of(node: &NodeView, may_write: bool) -> Self {
        match node.is_alive {
            _ if node.is_self && !may_write => Self::Stopped,
            false => Self::Dead,
            true if !node.is_self && node.unchanged_ms > LATE_AFTER_MS => Self::Late,
            true => Self::Alive,
        }
    }
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<NodeList>, ApiError> {
    let nodes = app.orchestrator.nodes().await.map_err(|error| store_error(&error))?;
    let may_write = app.orchestrator.may_write();
    let row = |node: NodeView| DeckNode {
        state: NodeState::of(&node, may_write),
        name: node.name,
        address: node.address,
        version: node.version,
        is_self: node.is_self,
        sessions: node.sessions,
        calls: node.calls,
        unchanged_ms: node.unchanged_ms,
        lag_ms: node.lag_ms,
        started_ms: node.started_ms,
    };
    Ok(Json(NodeList { nodes: nodes.into_iter().map(row).collect() }))
}

pub(super) fn describe() -> Operation {
    let example = json!({ "nodes": [{
        "name": "one", "address": "http://10.0.0.7:8080", "version": "0.1.0", "state": "alive", "isSelf": true,
        "sessions": 12, "calls": 3, "unchangedMs": 1_200, "lagMs": 1, "startedMs": 1_760_000_000_000_u64,
    }] });
    operation("listNodes", "List the nodes that share the store")
        .description("A node is dead when its row has been unchanged for 15 s, as this node has seen it.")
        .json_response::<NodeList>(200, "The nodes, by name.", Some(example))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_late_before_it_is_dead() {
        let node = |unchanged_ms, is_alive, is_self| NodeView {
            name: "one".into(),
            address: String::new(),
            boot: String::new(),
            version: String::new(),
            sessions: 0,
            calls: 0,
            lag_ms: None,
            started_ms: 0,
            unchanged_ms,
            is_alive,
            is_self,
        };
        let state = |unchanged_ms, is_alive, is_self, may_write| {
            NodeState::of(&node(unchanged_ms, is_alive, is_self), may_write)
        };
        assert_eq!(state(3_000, true, false, true), NodeState::Alive);
        assert_eq!(state(8_000, true, false, true), NodeState::Late);
        assert_eq!(state(15_000, false, false, true), NodeState::Dead);
        assert_eq!(state(0, true, true, false), NodeState::Stopped);
        assert_eq!(state(15_000, false, false, false), NodeState::Dead);
    }
}
