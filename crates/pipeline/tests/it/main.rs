//! The pipeline behind the trait of live models, with scripted engines and paused time.

mod barge_in;
mod failures;
mod harness;
mod properties;
mod tools;
mod turns;
