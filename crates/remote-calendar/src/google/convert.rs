//! Between Google's events and ours.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{Event, NewEvent, sha256};

use super::failed;
use super::wire::{
    Attendee, CLIENT_PROPERTY, CONFERENCE_PROPERTY, ConferenceData, ConferenceSolution, CreateConference,
    EventResource, EventTime, ExtendedProperties,
};

/// What Google takes as the value of a private property.
const MAX_PROPERTY_CHARS: usize = 1_024;

/// The same for every attempt of one call, and for no other. Google takes `a` to `v` and digits.
pub(super) fn event_id(call_key: &str) -> String {
    format!("qd{}", &sha256(call_key.as_bytes())[..40])
}

/// Whether this can be an id of Google's. Anything else must not become part of an address.
pub(super) fn is_event_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'@' | b'.');
    (1..=1_024).contains(&id.len()) && id.bytes().all(is_plain) && !id.bytes().all(|byte| byte == b'.')
}

/// A window or an appointment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl From<(Timestamp, Timestamp)> for Span {
    fn from((start, end): (Timestamp, Timestamp)) -> Self {
        Self { start, end }
    }
}

impl Span {
    /// In UTC, as Google takes them.
    pub(super) fn texts(&self) -> (String, String) {
        (self.start.to_string(), self.end.to_string())
    }

    pub(super) fn of(event: &EventResource, zone: &TimeZone) -> Result<Self, CapabilityError> {
        let (start, end) = (moment(&event.start, zone), moment(&event.end, zone));
        match (start, end) {
            (Some(start), Some(end)) => Ok(Self { start, end }),
            // Left out, its time would look free.
            _ => Err(failed(CapabilityErrorCode::NotAvailable, "an event has times that cannot be read")),
        }
    }
}

pub(super) fn to_event(
    resource: EventResource,
    calendar: &str,
    zone: &TimeZone,
) -> Result<Event, CapabilityError> {
    let span = Span::of(&resource, zone)?;
    let (start, end) = span.texts();
    let conference = resource.conference().map(str::to_owned);
    let booked_by = resource.extended_properties.private.get(CLIENT_PROPERTY);
    let booked_by = booked_by.map(|client| client.as_str().into());
    let people = resource.attendees.into_iter().filter(|attendee| !attendee.resource);
    Ok(Event {
        id: resource.id,
        start,
        end,
        summary: resource.summary,
        attendees: people.map(|attendee| attendee.email).filter(|email| !email.is_empty()).collect(),
        calendar: calendar.to_owned(),
        description: resource.description,
        conference,
        version: Some(resource.etag).filter(|etag| !etag.is_empty()),
        sequence: resource.sequence,
        booked_by,
        ..Event::default()
    })
}

/// The event to insert for a booking. `meet` asks Google for a link.
pub(super) fn to_resource(new: NewEvent, span: &Span, id: String, client: &str, meet: bool) -> EventResource {
    let (start, end) = span.texts();
    let mut private = BTreeMap::from([(CLIENT_PROPERTY.to_owned(), client_property(client))]);
    if let Some(url) = &new.conference_url {
        private.insert(CONFERENCE_PROPERTY.to_owned(), url.clone());
    }
    let asks_for_meet = meet && new.conference && new.conference_url.is_none();
    let conference_data = asks_for_meet.then(|| ConferenceData {
        create_request: Some(CreateConference {
            request_id: id.clone(),
            conference_solution_key: ConferenceSolution { r#type: "hangoutsMeet".into() },
            ..CreateConference::default()
        }),
        ..ConferenceData::default()
    });
    EventResource {
        id,
        summary: new.summary,
        description: new.description,
        location: new.conference_url.unwrap_or_default(),
        start: EventTime::at(&start),
        end: EventTime::at(&end),
        attendees: new.attendees.into_iter().map(|email| Attendee { email, ..Attendee::default() }).collect(),
        extended_properties: ExtendedProperties { private },
        conference_data,
        ..EventResource::default()
    }
}

/// A client's id as it is kept with its bookings. One that is too long is not cut: that would make two clients one.
pub(super) fn client_property(client: &str) -> String {
    if client.chars().count() <= MAX_PROPERTY_CHARS {
        client.to_owned()
    } else {
        format!("sha256:{}", sha256(client.as_bytes()))
    }
}

fn moment(time: &EventTime, zone: &TimeZone) -> Option<Timestamp> {
    match (&time.date_time, &time.date) {
        (Some(date_time), _) => date_time.parse().ok(),
        (None, Some(date)) => Some(date.parse::<Date>().ok()?.to_zoned(zone.clone()).ok()?.timestamp()),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_call_gets_an_id_that_google_takes_and_no_other_call_gets(a in ".{0,80}", b in ".{0,80}") {
            let id = event_id(&a);
            prop_assert!((5..=1_024).contains(&id.len()));
            prop_assert!(id.bytes().all(|byte| matches!(byte, b'a'..=b'v' | b'0'..=b'9')));
            prop_assert!(is_event_id(&id));
            prop_assert_eq!(a == b, id == event_id(&b));
        }

        #[test]
        fn whatever_a_model_names_as_an_id_stays_one_segment_of_the_address(id in "[aZ9./_@?%#-]{0,6}|.{0,20}") {
            let base = crate::http::check_address("https://www.example.com/v3").unwrap();
            let url = crate::oauth::below(&base, ["events", &id]);
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert!(!is_event_id(&id) || segments == ["v3", "events", &id]);
        }
    }

    #[test]
    fn ids_that_would_leave_their_place_are_no_ids() {
        for bad in ["", ".", "..", "...", "a/b", "a b", "a?b", "ä", &"x".repeat(1_025)] {
            assert!(!is_event_id(bad), "{bad}");
        }
        for good in ["qd0a", "abc_20260113T090000Z", "_60q30c1g60o30e1i60o4ac1g60rj8gpl"] {
            assert!(is_event_id(good), "{good}");
        }
    }

    #[test]
    fn a_whole_day_lasts_as_long_as_it_does_in_the_zone() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let day = |date: &str| EventTime { date: Some(date.into()), date_time: None };
        let event =
            EventResource { start: day("2026-03-29"), end: day("2026-03-30"), ..EventResource::default() };
        let (start, end) = Span::of(&event, &zone).unwrap().texts();
        assert_eq!((start.as_str(), end.as_str()), ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"));
    }

    #[test]
    fn long_ids_of_clients_stay_different() {
        let (a, b) = ("x".repeat(1_025), "x".repeat(1_026));
        assert_ne!(client_property(&a), client_property(&b));
        assert_eq!(client_property("client"), "client");
    }
}
