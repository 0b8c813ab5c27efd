//! The latency scheduler: whether a caller waits for a tool, hears something meanwhile, gets the result later, or is told
//! at once that it takes too long.
//!
//! [`schedule()`] decides from facts alone and reads no clock, so that a decision can be reproduced from the trace of its
//! call. The facts are gathered in `pipeline/schedule.rs`; how long a tool takes is measured in `metrics/recent.rs`.

mod schedule;

pub use schedule::{
    EstimateSource, LatencyEstimate, LatencyFacts, Schedule, ScheduleReason, ScheduledCall, is_scheduled,
    schedule,
};

#[cfg(test)]
mod tests;
