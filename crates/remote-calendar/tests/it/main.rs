//! The CalDAV calendar with Radicale, a server that is not ours. `scripts/radicale` installs it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bookings;
mod discovery;
mod failures;
mod proxy;
mod radicale;
mod recurrence;
mod statuses;
mod sync;
mod world;
