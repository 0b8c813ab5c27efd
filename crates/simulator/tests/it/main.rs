//! Conversations with the simulated providers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod live;
