//! A point in time as a calendar means it: a meeting at nine in Berlin stays at nine when the clocks change.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// A time, or a whole day. Written `2026-01-13T09:00:00Z`, `2026-01-13T09:00:00[Europe/Berlin]`, `2026-01-13T09:00:00`
/// (wherever the owner is) or `2026-01-13`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Moment {
    /// The same instant everywhere.
    Utc(Timestamp),
    /// What the clocks of a zone show.
    Zoned(DateTime, Zone),
    /// What the owner's clock shows.
    Floating(DateTime),
    /// A day, from midnight to midnight by the owner's clock.
    Date(Date),
}

/// The IANA name of a zone that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time")]
pub struct ParseMomentError(String);

impl Zone {
    pub(crate) fn find(name: &str) -> Option<Self> {
        let zone = TimeZone::get(name).ok()?;
        Some(Self(zone.iana_name()?.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::get(&self.0).unwrap_or(TimeZone::UTC)
    }
}

impl Moment {
    /// The instant, for an owner in `home`. `None` at the very edge of the calendar.
    ///
    /// A time that the clocks skip is read with the offset before the gap, one that happens twice as the first of the
    /// two, as RFC 5545 has it.
    pub(crate) fn instant(&self, home: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Utc(instant) => Some(*instant),
            _ => self.zone(home).to_timestamp(self.wall()).ok(),
        }
    }

    pub(crate) fn zone(&self, home: &TimeZone) -> TimeZone {
        match self {
            Self::Utc(_) => TimeZone::UTC,
            Self::Zoned(_, zone) => zone.time_zone(),
            Self::Floating(_) | Self::Date(_) => home.clone(),
        }
    }

    /// The wall-clock time.
    pub(crate) fn wall(&self) -> DateTime {
        match self {
            Self::Utc(instant) => TimeZone::UTC.to_datetime(*instant),
            Self::Zoned(wall, _) | Self::Floating(wall) => *wall,
            Self::Date(day) => day.to_datetime(jiff::civil::Time::midnight()),
        }
    }

    /// The same kind of moment at another wall-clock time.
    pub(crate) fn at_wall(&self, wall: DateTime) -> Option<Self> {
        Some(match self {
            Self::Utc(_) => Self::Utc(TimeZone::UTC.to_timestamp(wall).ok()?),
            Self::Zoned(_, zone) => Self::Zoned(wall, zone.clone()),
            Self::Floating(_) => Self::Floating(wall),
            Self::Date(_) => Self::Date(wall.date()),
        })
    }

    /// The same kind of moment at an instant. A day becomes a time.
    pub(crate) fn at_instant(&self, instant: Timestamp, home: &TimeZone) -> Option<Self> {
        match self {
            Self::Date(_) => Some(Self::Utc(instant)),
            _ => self.at_wall(self.zone(home).to_datetime(instant)),
        }
    }

    /// The day after, for events that give no end.
    pub(crate) fn next_day(&self) -> Option<Self> {
        self.at_wall(self.wall().checked_add(1.day()).ok()?)
    }

    pub(crate) fn is_date(&self) -> bool {
        matches!(self, Self::Date(_))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utc(instant) => write!(f, "{instant}"),
            Self::Zoned(wall, zone) => write!(f, "{wall}[{}]", zone.0),
            Self::Floating(wall) => write!(f, "{wall}"),
            Self::Date(day) => write!(f, "{day}"),
        }
    }
}

impl FromStr for Moment {
    type Err = ParseMomentError;

    fn from_str(text: &str) -> Result<Self, ParseMomentError> {
        let bad = || ParseMomentError(text.to_owned());
        if let Some((wall, zone)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            let zone = Zone::find(zone).ok_or_else(bad)?;
            return Ok(Self::Zoned(wall.parse().map_err(|_| bad())?, zone));
        }
        if let Ok(instant) = text.parse() {
            return Ok(Self::Utc(instant));
        }
        if text.contains(['T', 't', ' ']) {
            return text.parse().map(Self::Floating).map_err(|_| bad());
        }
        text.parse().map(Self::Date).map_err(|_| bad())
    }
}

impl TryFrom<String> for Moment {
    type Error = ParseMomentError;

    fn try_from(text: String) -> Result<Self, ParseMomentError> {
        text.parse()
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.to_string()
    }
}
