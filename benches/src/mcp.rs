//! The registry for MCP clients, as the peers' load generator calls it.
//!
//! usage: `quarterdeck-benches mcp PORT FIXTURES`
//!
//! It is the product's own path from socket to socket: guard, identity, orchestrator with its gates, ledger and audit.

use std::future::pending;
use std::sync::Arc;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{self, TextAgent};
use quarterdeck_contracts::Store;
use quarterdeck_mcp_server::{McpParts, McpServer, McpSettings};
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_runtime::{Orchestrator, Registry, RuntimeParts};
use quarterdeck_server::{App, Identity, Operations, ServerParts, Settings};
use quarterdeck_store::MemoryStore;
use tokio::net::TcpListener;

/// All connections of the load generator give the same name, so they are one client.
const MAX_SESSIONS: usize = 1_000;

pub(crate) fn run(registry: Arc<Registry>, port: u16) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
        quarterdeck_server::serve(app(registry), listener, pending()).await;
    });
}

fn app(registry: Arc<Registry>) -> Arc<App> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let orchestrator = Orchestrator::new(RuntimeParts::new(store));
    let mcp = McpServer::new(McpParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        knowledge: None,
        settings: McpSettings { max_sessions_per_client: MAX_SESSIONS, ..McpSettings::default() },
    });
    App::new(ServerParts {
        text: text_agent(&orchestrator, &registry),
        voice: None,
        mcp: Some(mcp),
        orchestrator,
        registry,
        identity: Identity::new(b"nothing that is signed here is kept", None, Vec::new()),
        operations: Operations::default(),
        settings: Settings::default(),
        node_secret: None,
    })
}

/// A server has one, and these benchmarks do not ask it anything.
pub(crate) fn text_agent(orchestrator: &Orchestrator, registry: &Arc<Registry>) -> TextAgent {
    TextAgent::new(text::Parts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: Arc::new(Rehearsal::new()),
        fallback: None,
        prompts: Prompts::default(),
        settings: text::Settings::default(),
    })
}
