//! What Google's calendar API sends and takes (v3). Members that we do not use are ignored, missing ones are empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The private property that holds the client who booked an event.
pub(super) const CLIENT_PROPERTY: &str = "quarterdeckClient";
/// The private property that holds the address of a video call that Google did not make.
pub(super) const CONFERENCE_PROPERTY: &str = "quarterdeckConference";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EventResource {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    #[serde(skip_serializing)]
    pub(super) etag: String,
    /// `confirmed`, `tentative` or `cancelled`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) status: String,
    pub(super) summary: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) location: String,
    pub(super) start: EventTime,
    pub(super) end: EventTime,
    /// `transparent` does not block time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) transparency: String,
    #[serde(skip_serializing)]
    pub(super) sequence: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attendees: Vec<Attendee>,
    pub(super) extended_properties: ExtendedProperties,
    #[serde(skip_serializing)]
    pub(super) hangout_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conference_data: Option<ConferenceData>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EventTime {
    /// A whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date_time: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Attendee {
    pub(super) email: String,
    /// Whether this is the calendar whose copy of the event it is.
    #[serde(rename = "self", skip_serializing)]
    pub(super) is_self: bool,
    #[serde(skip_serializing)]
    pub(super) response_status: String,
    /// A room.
    #[serde(skip_serializing)]
    pub(super) resource: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ExtendedProperties {
    /// Seen only in this copy of the event, not in those of attendees.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) private: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConferenceData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) create_request: Option<CreateConference>,
    #[serde(skip_serializing)]
    pub(super) entry_points: Vec<EntryPoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CreateConference {
    /// A request with the same id as before is ignored.
    pub(super) request_id: String,
    pub(super) conference_solution_key: ConferenceSolution,
    #[serde(skip_serializing)]
    pub(super) status: ConferenceStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ConferenceSolution {
    pub(super) r#type: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConferenceStatus {
    /// `pending`, `success` or `failure`.
    pub(super) status_code: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EntryPoint {
    pub(super) entry_point_type: String,
    pub(super) uri: String,
}

impl EventResource {
    pub(super) fn is_cancelled(&self) -> bool {
        self.status == "cancelled"
    }

    /// Whether it blocks time, as Google's own free/busy has it: not if it is marked as free, nor if the owner declined.
    pub(super) fn is_busy(&self) -> bool {
        let is_declined =
            self.attendees.iter().any(|attendee| attendee.is_self && attendee.response_status == "declined");
        !self.is_cancelled() && self.transparency != "transparent" && !is_declined
    }

    pub(super) fn conference(&self) -> Option<&str> {
        let made_by_google = || {
            let points = &self.conference_data.as_ref()?.entry_points;
            points.iter().find(|point| point.entry_point_type == "video").map(|point| point.uri.as_str())
        };
        let property = self.extended_properties.private.get(CONFERENCE_PROPERTY).map(String::as_str);
        property.or(self.hangout_link.as_deref()).or_else(made_by_google)
    }

    pub(super) fn is_conference_pending(&self) -> bool {
        let request = self.conference_data.as_ref().and_then(|data| data.create_request.as_ref());
        request.is_some_and(|request| request.status.status_code == "pending")
    }
}

/// A page of `events.list`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EventPage {
    pub(super) items: Vec<EventResource>,
    pub(super) next_page_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FreeBusyRequest<'a> {
    pub(super) time_min: &'a str,
    pub(super) time_max: &'a str,
    pub(super) items: [CalendarItem<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct CalendarItem<'a> {
    pub(super) id: &'a str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FreeBusyReply {
    pub(super) calendars: BTreeMap<String, FreeBusyCalendar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FreeBusyCalendar {
    pub(super) errors: Vec<ErrorItem>,
    pub(super) busy: Vec<BusyPeriod>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct BusyPeriod {
    pub(super) start: String,
    pub(super) end: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorReply {
    pub(super) error: ErrorBody,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBody {
    pub(super) errors: Vec<ErrorItem>,
    /// Of newer errors: `RESOURCE_EXHAUSTED`.
    pub(super) status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorItem {
    pub(super) reason: String,
}
