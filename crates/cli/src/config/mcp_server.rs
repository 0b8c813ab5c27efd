//! `[mcp]`: the registry for MCP clients.

use quarterdeck_mcp_server::McpSettings;

use super::kinds::{boolean, seconds, whole};
use super::reader::{Reader, settings};

const DAY: u64 = 24 * 3_600;

/// How MCP clients are served.
#[derive(Debug, Clone)]
pub(crate) struct McpServing {
    pub(crate) is_on: bool,
    pub(crate) settings: McpSettings,
}

pub(super) fn mcp_server(from: &mut Reader, max_body_bytes: usize) -> McpServing {
    let mut settings = McpSettings { max_body_bytes, ..McpSettings::default() };
    let mut is_on = true;
    from.table("mcp", "The registry for MCP clients, at /mcp.");
    settings! { from;
        "serve": boolean() => is_on, "Serve the tools, records and guides to MCP clients";
        "sessions_per_client": whole(1, 100_000) => settings.max_sessions_per_client,
            "Sessions that one MCP client may have open at once";
        "sessions": whole(1, 1_000_000) => settings.max_sessions,
            "Sessions that all MCP clients together may have open at once";
        "idle_seconds": seconds(10, 30 * DAY) => settings.idle_timeout,
            "After how long without a request the session of an MCP client ends by itself";
        "task_seconds": seconds(0, 3_600) => settings.task_wait,
            "How long a call of an MCP client that does not know tasks waits for a tool that goes on in the background";
        "approval_pages": boolean() => settings.approval_pages,
            "Let users of MCP clients that cannot ask approve calls on a page under /approvals";
        "list_seconds": seconds(0, DAY) => settings.list_ttl,
            "How long MCP clients may use a list of tools without asking again; they are told of changes if they listen";
    }
    McpServing { is_on, settings }
}
