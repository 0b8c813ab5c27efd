//! The registry for MCP clients. Every call goes through the orchestrator, like the calls of the agents: same gates, same
//! ledger, same audit.
//!
//! The protocol is rmcp's; this crate says what is behind its methods. It knows no credentials: a transport says who
//! calls ([`McpCaller`]).

mod call;
mod caller;
mod changes;
mod completion;
mod confirmation;
mod cursor;
mod guide;
mod handler;
mod handshake;
mod http;
mod line_stream;
mod lines;
mod prompts;
mod request_count;
mod resource_uri;
mod resources;
mod result;
#[cfg(test)]
mod sample_records;
mod server;
mod session;
mod sessions;
mod settings;
mod tasks;
mod tools;

#[cfg(feature = "fuzzing")]
pub use confirmation::opens_as_state;
#[cfg(feature = "fuzzing")]
pub use lines::refusal_of_line;

pub use caller::{LocalPrograms, McpCaller};
pub use confirmation::{ApprovalError, ApprovalPages, ApprovalView, Approver};
pub use cursor::{InvalidCursor, PagedList};
pub use handler::McpHandler;
pub use http::McpHttp;
pub use line_stream::{Line, LineReader, LineWriter};
pub use lines::ConnectionLost;
pub use resource_uri::{InvalidResourceUri, KNOWLEDGE_URI_TEMPLATE, ResourceUri};
pub use server::{McpParts, McpServer};
pub use settings::McpSettings;
