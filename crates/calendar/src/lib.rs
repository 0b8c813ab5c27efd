//! Calendars whose events are rows of the store.
//!
//! An event is one row under `<calendar>/<uid>`. Rows come from bookings, from `.ics` files and from case files, and
//! leave as `.ics` again. Recurring events are expanded when they are asked for, within limits that no rule can pass.
//! This crate opens no file and no connection, and reads no clock.

mod config;
mod expand;
mod given;
mod ics;
mod local;
mod moment;
mod row;
mod rule;

pub use config::{CalendarConfig, ConfigError, Owner};
pub use given::parse_given_events;
pub use ics::{IcsError, Import, MAX_EVENTS, MAX_ICS_BYTES, export, import};
pub use local::{LocalCalendar, REVISION};
pub use moment::{Moment, ParseMomentError, Zone};
pub use row::{Details, EventRow, Override, ParseRowError, Status};
