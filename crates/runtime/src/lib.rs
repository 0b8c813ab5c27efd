//! Runs tools: an artifact is loaded and verified once, then each call is validated, executed and answered.
//!
//! It knows no HTTP, no JavaScript engine and no model: hosts come in as trait objects, and nothing here knows text
//! from voice beyond the mode in a call's facts.

mod arguments;
mod envelope;
mod execute;
mod guard;
mod native;
mod registry;

pub use arguments::{ArgumentFault, parse_arguments};
pub use native::NativeHost;
pub use registry::{Hosts, LoadError, LoadProblem, LoadedTool, NotBuilt, Registry, ReloadError, Snapshot};
