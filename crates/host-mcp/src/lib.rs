//! Tools that an MCP server elsewhere runs. Each is a folder like any other: reviewed, pinned by a digest, and judged by the
//! same gates.

mod binding;
mod difference;
mod foreign;
mod handler;
mod host;
mod import;
mod inspector;
mod published;
mod published_file;
mod result;
mod server_config;
mod upstream;
mod visit;

use quarterdeck_contracts::HandlerKind;

pub use binding::{BINDING_FILE, Binding, MAX_TOOL_NAME_BYTES, is_tool_name};
pub use difference::difference;
pub use host::McpHost;
pub use import::{Import, InvalidImport, ToolFolder, Update, UpdateError, folder_of, tool_id, update_folder};
pub use inspector::McpInspector;
pub use published::{InvalidDigest, PublishedTool, ToolDigest};
pub use published_file::{PUBLISHED_FILE, parse_published, published_to_text};
pub use server_config::{
    HttpConfig, InvalidServerName, OAuthConfig, ServerName, StdioConfig, UpstreamConfig, UpstreamLimits,
    UpstreamTransport,
};
#[cfg(feature = "fuzzing")]
pub use upstream::fuzz_messages;
pub use visit::{Visit, VisitAnswer, VisitError};

/// The kind of the handlers that this crate inspects and runs: `handler.mcp.json`.
pub const MCP_KIND: HandlerKind = HandlerKind::new("mcp");
