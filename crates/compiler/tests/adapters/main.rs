//! The provider adapters, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test has no better answer to a surprise")]

mod anthropic;
mod bounds;
mod counter_examples;
mod definition;
mod gemini_corpus;
mod gemini_native;
mod gemini_unions;
mod invariants;
mod openai_compatible;
mod openai_strict;
mod passed_through;
mod random_schema;
mod renaming;
