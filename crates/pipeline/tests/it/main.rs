//! The pipeline behind the trait of live models, with scripted engines and paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod barge_in;
mod failures;
mod harness;
mod properties;
mod spans;
mod tools;
mod turns;
