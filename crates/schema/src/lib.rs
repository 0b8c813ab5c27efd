//! JSON Schema as Quarterdeck means it: strictness, formats, defaults, error lists.
//!
//! The compiler judges schemas with it and the runtime judges arguments with it, so that the two agree to the letter.

mod budget;
mod cycles;
mod defaults;
mod document;
mod engine;
mod excerpt;
mod explain;
mod formats;
mod keywords;
mod lint;
mod nearest;
mod pattern;
mod plan;
mod pointer;
mod prepare;
mod schema;
mod types;
mod uri;

pub use budget::MAX_STEPS;
pub use explain::Violation;
pub use lint::{LintIssue, Rule, Severity, lint};
pub use nearest::{nearest, nearest_few};
pub use schema::{Judgement, Schema, SchemaError};
