//! The calendar from outside: rows in, occurrences and files out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bookings;
mod changes;
mod given;
mod ics;
mod privacy;
mod recurrence;
mod round_trip;
mod world;
