//! The calendars of a site: the registry of their backends, and the backend whose events are rows of the store.
//!
//! An event is one row under `<calendar>/<uid>`. Rows come from bookings, from `.ics` files and from case files, and
//! leave as `.ics` again. Recurring events are expanded when they are asked for, within limits that no rule can pass.
//! Backends that live elsewhere read and write the same rows. This crate opens no file and no connection, and reads no
//! clock.

mod change;
mod config;
mod expand;
mod given;
mod ics;
mod local;
mod moment;
mod registry;
mod row;
mod rule;
mod template;
mod times;
mod view;

pub use change::{ChangeError, OccurrenceId};
pub use config::{CalendarConfig, ConfigError, Owner};
pub use given::parse_given_events;
pub use ics::{
    IcsError, Import, MAX_EVENTS, MAX_ICS_BYTES, cancel_in_object, export, import, invitation,
    move_in_object, read_rows, write_object,
};
pub use local::{LocalCalendar, REVISION};
pub use moment::{Moment, ParseMomentError, Zone};
pub use registry::{Calendars, CalendarsBuilder};
pub use row::{Details, EventRow, Override, ParseRowError, Status, new_booking};
pub use template::ConferenceTemplate;
pub use times::{read_period, read_window};
pub use view::{EventCollector, find_event};
