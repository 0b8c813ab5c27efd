//! What the hostile server publishes, for the tests that import it.
//!
//! The server itself is the binary `hostile-mcp-server`: it speaks raw lines of JSON, without a library that would
//! keep it from breaking the rules.

mod behaviour;
mod published;

pub use behaviour::{BEHAVIOURS, HTTP_BEHAVIOURS};
pub use published::{BOOK, LOOKUP, published_tools};
