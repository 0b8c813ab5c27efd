//! JavaScript handlers, on QuickJS in WebAssembly.
//!
//! This crate knows handlers and engines. It does not know tools, schemas or sessions.
//!
//! [`JsInspector`] and [`TsInspector`] look at a handler before a build. [`JsHost`] runs it. QuickJS is compiled to WebAssembly when this crate is built
//! (`guest/` and `build.rs`), and its code is shared by all handlers; a handler is an image of a memory in which it has been loaded,
//! and every call begins with that image. What runs instances, and what they may ask for, is `host-wasm`.

mod answer;
mod code_cache;
mod dynamic;
mod fault;
mod guest;
mod handler;
mod hints;
mod host;
mod inspector;
mod js_engine;
mod modules;
mod node_words;
mod offline;
mod parser;
mod program;
mod question;
mod url;

use quarterdeck_contracts::HandlerKind;

pub use host::{HostStats, JsHost};
pub use inspector::{JsInspector, TsInspector};
pub use quarterdeck_host_wasm::{
    FetchAnswers, FetchConfig, FetchStandIn, HostConfig, StandInAnswer, ToolGrants,
};

/// The kinds of the handlers that this crate inspects and runs: `handler.js`.
pub const JS_KIND: HandlerKind = HandlerKind::new("js");
/// And `handler.ts`.
pub const TS_KIND: HandlerKind = HandlerKind::new("ts");
