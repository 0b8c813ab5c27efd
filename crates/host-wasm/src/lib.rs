//! Handlers compiled to WebAssembly, from any language, on wasmtime.
//!
//! This crate knows modules and instances. It does not know tools, schemas or sessions.
//!
//! [`WasmInspector`] looks at a module before a build. [`WasmHost`] runs it: the code is compiled once for all handlers with
//! the same bytes, and every call has an instance of its own, whose memory begins as a copy-on-write image of the module's
//! data. `docs/WASM.md` has the interface between a module and the host.

mod answer;
mod call;
mod call_state;
mod code;
mod config;
mod control;
mod engine;
mod host;
mod imports;
mod input;
mod inspector;
mod instance;
mod interface;
mod memory;
mod module_check;
mod quota;
mod request;
mod step;
mod ticker;

use quarterdeck_contracts::HandlerKind;

pub use config::HostConfig;
pub use host::{HostStats, WasmHost};
pub use inspector::WasmInspector;

/// The kind of the handlers that this crate inspects and runs: `handler.wasm`.
pub const WASM_KIND: HandlerKind = HandlerKind::new("wasm");
