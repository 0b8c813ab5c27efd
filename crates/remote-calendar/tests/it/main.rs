//! Calendars elsewhere. CalDAV is tested with Radicale, a server that is not ours (`scripts/radicale` installs it), Google and
//! Zoom with servers of ours that speak the documented wire format.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bookings;
mod discovery;
mod failures;
mod google;
mod http_server;
mod proxy;
mod radicale;
mod recurrence;
mod statuses;
mod sync;
mod world;
mod zoom;
