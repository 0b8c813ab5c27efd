//! Whose calendars these are.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalendarConfig {
    /// The user whose time is booked.
    pub owner: Owner,
    /// IANA name of the zone in which whole days and times without a zone are meant.
    pub time_zone: String,
    /// The names of the calendars. A booking goes to the first unless it says otherwise.
    pub calendars: Vec<String>,
    /// Where video calls are held; `{id}` becomes the event's own part.
    pub conference_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Owner {
    pub name: String,
    pub email: String,
}

impl Default for CalendarConfig {
    fn default() -> Self {
        Self {
            owner: Owner::default(),
            time_zone: "UTC".into(),
            calendars: ["primary", "team", "personal"].map(String::from).into(),
            conference_url: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{0:?} is not a known IANA time zone; write it like Europe/Berlin")]
    TimeZone(String),
    #[error("name at least one calendar")]
    NoCalendar,
    #[error("{0:?} cannot be the name of a calendar; use letters, digits, `-`, `_` and `.`")]
    Name(String),
}

impl CalendarConfig {
    /// Validates everything, and returns the time zone.
    pub(crate) fn check(&self) -> Result<TimeZone, ConfigError> {
        let is_name = |name: &str| {
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ' ');
            !name.is_empty() && name.len() <= 100 && name.chars().all(plain)
        };
        if self.calendars.is_empty() {
            return Err(ConfigError::NoCalendar);
        }
        if let Some(name) = self.calendars.iter().find(|name| !is_name(name)) {
            return Err(ConfigError::Name(name.clone()));
        }
        TimeZone::get(&self.time_zone).map_err(|_| ConfigError::TimeZone(self.time_zone.clone()))
    }
}
