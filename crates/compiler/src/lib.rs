//! Tool folders in, one artifact out.
//!
//! The path of data: [`Tree::read`] reads a tools folder within limits, [`compile()`] checks every tool and reports
//! all problems of all of them, and, when there is no error, links the tools into an [`Artifact`](quarterdeck_contracts::Artifact).
//! [`write_artifact`] puts it on disk whole or not at all.
//!
//! Nothing here runs a handler, reads the environment or touches the network. Handlers are looked at through
//! [`Inspector`](quarterdeck_contracts::handler::Inspector)s that the caller brings.

pub mod adapters;
mod checks;
mod compile;
mod diagnostic;
mod diff;
mod distinct;
mod documentation;
mod inspectors;
mod link;
mod native;
mod render;
pub mod rules;
mod source;
mod text;
mod tree;
mod write;

pub use compile::{Compilation, Options, Stamp, ToolReport, compile};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use diff::{Change, Difference, Effect, diff};
pub use documentation::{ExampleCall, example_calls};
pub use inspectors::Inspectors;
pub use native::NativeInspector;
pub use quarterdeck_schema::nearest;
pub use render::{Style, render, render_fault, to_json};
pub use source::SourceFile;
pub use tree::{Folder, Tree, TreeError};
pub use write::{WriteError, write_artifact};
