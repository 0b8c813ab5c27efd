//! JavaScript handlers on QuickJS.
//!
//! This crate knows handlers and engines. It does not know tools, schemas or sessions.
//!
//! [`JsInspector`] looks at a handler before a build. [`JsHost`] runs it: every call in an engine that has never run
//! another, made ahead of time from bytecode ([`HostConfig`] says how many), on a thread only while it computes.

mod answer;
mod bridge;
mod bytecode;
mod call;
mod config;
mod dynamic;
mod engine;
mod engine_pool;
mod fault;
mod fetch;
mod handler_status;
mod hints;
mod host;
mod inspector;
mod limits;
mod modules;
mod node_words;
mod priority;
mod program;
mod quarantine;
mod random;
mod thread_pool;
mod url;

use quarterdeck_contracts::HandlerKind;

pub use config::{FetchConfig, HostConfig};
pub use fetch::{FetchAnswers, FetchStandIn, StandInAnswer, ToolGrants};
pub use host::{HostStats, JsHost};
pub use inspector::JsInspector;

/// The kind of the handlers that this crate inspects and runs: `handler.js`.
pub const JS_KIND: HandlerKind = HandlerKind::new("js");
