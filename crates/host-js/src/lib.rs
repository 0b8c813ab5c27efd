//! JavaScript handlers on QuickJS.
//!
//! This crate knows handlers and engines. It does not know tools, schemas or sessions.

mod inspector;
mod modules;

pub use inspector::JsInspector;
