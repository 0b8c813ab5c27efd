//! The CalDAV calendar with Radicale, a server that is not ours. `scripts/radicale` installs it.

mod bookings;
mod discovery;
mod failures;
mod proxy;
mod radicale;
mod recurrence;
mod statuses;
mod world;
