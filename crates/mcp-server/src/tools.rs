//! `tools/list`: what a client may use.

use std::sync::{Arc, Mutex, PoisonError};

use quarterdeck_contracts::{Mode, Provider};
use quarterdeck_runtime::{LoadedTool, Session, Snapshot};
use rmcp::model::{CacheScope, ListToolsResult, Tool};

use crate::server::Shared;

/// How many versions of the tools have their lists kept.
const MAX_LISTS: usize = 4;

/// The tools of each version as the protocol has them, made once.
#[derive(Default)]
pub(crate) struct ToolLists {
    lists: Mutex<Vec<(String, Arc<[Tool]>)>>,
}

impl Shared {
    /// The tools that the client of a session may use in a written conversation, in the order of their ids.
    pub(crate) fn list_tools(&self, session: &Session) -> ListToolsResult {
        let all = self.tool_lists.of(session.snapshot());
        let available: Vec<&str> = usable_tools(session).map(tool_id).collect();
        let tools = all.iter().filter(|tool| available.contains(&&*tool.name)).cloned().collect();
        ListToolsResult::with_all_items(tools)
            .with_ttl_ms(self.parts.settings.list_ttl.as_millis() as u64)
            // Another client may see other tools.
            .with_cache_scope(CacheScope::Private)
    }

    /// The declaration of a tool, by which headers of requests are checked.
    pub(crate) fn find_tool(&self, name: &str) -> Option<Tool> {
        let tools = self.tool_lists.of(&self.parts.registry.snapshot());
        tools.iter().find(|tool| tool.name == name).cloned()
    }
}

impl ToolLists {
    fn of(&self, snapshot: &Snapshot) -> Arc<[Tool]> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = snapshot.content_hash();
        if let Some((_, list)) = lists.iter().find(|(of, _)| of == digest) {
            return list.clone();
        }
        let list: Arc<[Tool]> = snapshot.tools().filter(is_for_text).filter_map(declaration).collect();
        if lists.len() == MAX_LISTS {
            lists.remove(0);
        }
        lists.push((digest.to_owned(), list.clone()));
        list
    }
}

/// A tool as its compiled declaration has it. One that the protocol cannot take has none.
fn declaration(tool: &LoadedTool) -> Option<Tool> {
    let declaration = tool.compiled().provider_schemas.get(&Provider::Mcp)?;
    match serde_json::from_value(declaration.clone()) {
        Ok(tool) => Some(tool),
        Err(error) => {
            tracing::error!(tool = tool_id(tool), error = %error, "declaration for MCP clients cannot be read: build the tools anew");
            None
        }
    }
}

/// The tools that the client of a session may use in a written conversation.
pub(crate) fn usable_tools(session: &Session) -> impl Iterator<Item = &LoadedTool> {
    session.available_tools().filter(is_for_text)
}

fn is_for_text(tool: &&LoadedTool) -> bool {
    tool.metadata().allowed_modes.contains(&Mode::Text)
}

fn tool_id(tool: &LoadedTool) -> &str {
    tool.metadata().tool_id.as_str()
}
