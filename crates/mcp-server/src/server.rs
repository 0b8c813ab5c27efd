//! What all MCP sessions share.

use std::sync::Arc;

use quarterdeck_contracts::Knowledge;
use quarterdeck_runtime::{Orchestrator, Registry};
use tokio::sync::watch;

use crate::caller::McpCaller;
use crate::confirmation::Confirmations;
use crate::handler::McpHandler;
use crate::sessions::Sessions;
use crate::settings::McpSettings;
use crate::tools::ToolLists;

/// What an [`McpServer`] is made of.
pub struct McpParts {
    /// Runs the calls.
    pub orchestrator: Orchestrator,
    /// The tools.
    pub registry: Arc<Registry>,
    /// The records, if there are any.
    pub knowledge: Option<Arc<dyn Knowledge>>,
    /// Limits and times.
    pub settings: McpSettings,
}

/// The registry as an MCP server. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) shared: Arc<Shared>,
}

/// What all MCP sessions share.
pub(crate) struct Shared {
    pub(crate) parts: McpParts,
    pub(crate) sessions: Sessions,
    pub(crate) confirmations: Confirmations,
    pub(crate) tool_lists: ToolLists,
    /// Becomes true when the server closes.
    closing: watch::Sender<bool>,
}

impl Shared {
    /// Waits until the server closes.
    pub(crate) fn closing(&self) -> impl Future<Output = ()> + Send + Sync + 'static {
        let mut closing = self.closing.subscribe();
        async move {
            // A dropped sender has closed too.
            let _ = closing.wait_for(|is_closing| *is_closing).await;
        }
    }

    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }
}

impl McpServer {
    pub fn new(parts: McpParts) -> Self {
        Self {
            shared: Arc::new(Shared {
                parts,
                sessions: Sessions::default(),
                confirmations: Confirmations::new(),
                tool_lists: ToolLists::default(),
                closing: watch::Sender::new(false),
            }),
        }
    }

    /// Ends the sessions of clients that have asked nothing for a while. To be called now and then.
    pub fn end_idle_sessions(&self) {
        self.shared.end_idle_sessions();
    }

    /// A handler for one connection whose requests say themselves who calls.
    pub fn handler(&self) -> McpHandler {
        McpHandler::new(self.shared.clone(), None)
    }

    /// A handler for a connection that has one client, such as a pipe.
    pub fn handler_for(&self, caller: McpCaller) -> McpHandler {
        McpHandler::new(self.shared.clone(), Some(caller))
    }
}
