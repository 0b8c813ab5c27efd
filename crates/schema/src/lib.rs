//! JSON Schema as Quarterdeck means it: strictness, formats, defaults, error lists.
//!
//! The compiler judges schemas with it and the runtime judges arguments with it, so that the two agree to the letter.

mod schema;

pub use schema::{Schema, Uncompilable};
