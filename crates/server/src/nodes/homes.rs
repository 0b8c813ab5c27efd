//! Which node serves an MCP client. Its sessions are in the memory of one node, and a load balancer knows none of them.

use axum::http::HeaderMap;
use quarterdeck_contracts::{StoreError, sha256};
use quarterdeck_runtime::{Holder, NodeView};

use super::Nodes;

/// Between the id of a session and the node that has it. No id holds it.
const SEPARATOR: char = '@';
/// From this version of MCP on, clients have no sessions of their own.
const FIRST_WITHOUT_SESSIONS: &str = "2026-07-28";

/// Which node has something in its memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Here,
    Elsewhere(Box<Holder>),
    /// A node that is gone.
    Gone,
}

impl Nodes {
    /// An id that tells every node who has what it names.
    pub(crate) fn mark(&self, id: &str) -> String {
        format!("{id}{SEPARATOR}{}", self.name())
    }

    /// Where a node is, by its name.
    pub(crate) async fn find_node(&self, name: &str) -> Result<Place, StoreError> {
        if name == self.name() {
            return Ok(Place::Here);
        }
        let known = self.orchestrator.nodes().await?;
        let found = known.into_iter().find(|view| view.name == name && view.is_alive);
        Ok(found.map_or(Place::Gone, |view| Place::Elsewhere(Box::new(holder(view)))))
    }

    /// The node that serves a client whose requests name no session; `None` when it is this one. All nodes agree on it for
    /// as long as they see the same ones alive.
    pub(crate) async fn find_home(&self, client: &str) -> Result<Option<Box<Holder>>, StoreError> {
        let known = self.orchestrator.nodes().await?;
        let alive = known.into_iter().filter(|view| view.is_alive);
        let home = alive.max_by_key(|view| sha256(format!("{client}\n{}", view.name).as_bytes()));
        Ok(home.filter(|view| !view.is_self).map(|view| Box::new(holder(view))))
    }
}

/// The id and the node of a marked id.
pub(crate) fn split_mark(marked: &str) -> Option<(&str, &str)> {
    marked.split_once(SEPARATOR)
}

/// Whether a request of an MCP client belongs to a session that no header names.
pub(crate) fn names_no_session(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= FIRST_WITHOUT_SESSIONS)
}

fn holder(view: NodeView) -> Holder {
    Holder { node: view.name, address: view.address, boot: view.boot }
}
