//! Handlers compiled to WebAssembly, from any language, on wasmtime.
//!
//! This crate knows modules and instances. It does not know tools, schemas or sessions.
//!
//! [`WasmInspector`] looks at a module before a build. [`WasmHost`] runs it: the code is compiled once for all handlers with
//! the same bytes, and every call has an instance of its own, whose memory begins as a copy-on-write image of the module's
//! data. `docs/WASM.md` has the interface between a module and the host.

mod answer;
mod call;
mod call_slot;
mod call_state;
mod code;
mod config;
mod control;
mod ending;
mod engine;
mod fetch;
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
mod retired;
mod step;
mod surrogates;
mod ticker;

use quarterdeck_contracts::HandlerKind;

pub use answer::without_confirmation;
pub use call::Calls;
pub use call_slot::{CallCount, CallSlot};
pub use call_state::{BodyForm, CallState, Channel, InputForm, Language, Returns};
pub use code::Code;
pub use config::{FetchConfig, HostConfig};
pub use ending::Ending;
pub use engine::WasmEngine;
pub use fetch::{FetchAnswers, FetchStandIn, Fetcher, StandInAnswer, ToolFetcher, ToolGrants};
pub use host::{HostStats, WasmHost};
pub use inspector::WasmInspector;
pub use memory::{bytes, bytes_mut, fault, memory_of};
pub use request::CapabilityErrorJson;
pub use retired::Retired;
pub use step::Threads;
pub use surrogates::without_lone_surrogates;
pub use ticker::RunningStep;

/// The kind of the handlers that this crate inspects and runs: `handler.wasm`.
pub const WASM_KIND: HandlerKind = HandlerKind::new("wasm");
