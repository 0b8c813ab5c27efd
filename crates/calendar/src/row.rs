//! An event as it is kept.

use std::sync::Arc;

use jiff::Timestamp;
use quarterdeck_contracts::{BookingOrigin, NewEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::moment::Moment;

/// One row of the table `calendar`: an event with everything that it takes to expand it and to export it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    pub uid: String,
    pub calendar: String,
    /// The event, or the first of a series.
    #[serde(flatten)]
    pub details: Details,
    /// How it repeats: the values of `RRULE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// When it also happens (`RDATE`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Moment>,
    /// When it does not (`EXDATE`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Moment>,
    /// Occurrences that differ from the rest (`RECURRENCE-ID`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// The client who booked it through us. Rows of the first release and imported events have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_by: Option<Arc<str>>,
    /// When it was last changed (`DTSTAMP`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Moment>,
    /// How often it was moved or cut, as invitations count it (`SEQUENCE`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The properties of an event, or of one occurrence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    pub start: Moment,
    /// The moment after the last.
    pub end: Moment,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location: String,
    /// E-mail addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attendees: Vec<String>,
    /// Where its video call is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conference: Option<String>,
    #[serde(default, skip_serializing_if = "Status::is_confirmed")]
    pub status: Status,
    /// Shown in the calendar, but does not make its time busy (`TRANSP:TRANSPARENT`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Override {
    /// Which one: when it would have begun.
    pub instead_of: Moment,
    /// What it became.
    #[serde(flatten)]
    pub details: Details,
}

/// Whether an event takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Confirmed,
    Tentative,
    Cancelled,
}

impl Status {
    fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed)
    }
}

impl Details {
    pub(crate) fn is_busy(&self) -> bool {
        !self.free && self.status != Status::Cancelled
    }
}

/// The row of an appointment that a client books.
pub fn new_booking(
    new: NewEvent,
    uid: String,
    (start, end): (Timestamp, Timestamp),
    origin: &BookingOrigin,
) -> EventRow {
    let details = Details {
        start: Moment::Utc(start),
        end: Moment::Utc(end),
        summary: new.summary,
        description: new.description,
        location: String::new(),
        attendees: new.attendees,
        conference: new.conference_url,
        status: Status::Confirmed,
        free: false,
    };
    let now =
        Timestamp::try_from(origin.now).ok().and_then(|now| Timestamp::from_second(now.as_second()).ok());
    EventRow {
        booked_by: Some(origin.client_id.clone()),
        stamp: now.map(Moment::Utc),
        ..EventRow::single(uid, new.calendar, details)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the calendar holds a row that is not an event")]
pub struct ParseRowError(#[from] serde_json::Error);

impl EventRow {
    /// Without recurrence.
    pub(crate) fn single(uid: String, calendar: String, details: Details) -> Self {
        Self {
            uid,
            calendar,
            details,
            rules: Vec::new(),
            also: Vec::new(),
            except: Vec::new(),
            overrides: Vec::new(),
            booked_by: None,
            stamp: None,
            sequence: 0,
        }
    }

    /// In the table `calendar`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.calendar, self.uid)
    }

    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub fn parse(value: &Value) -> Result<Self, ParseRowError> {
        Ok(Self::deserialize(value)?)
    }
}
