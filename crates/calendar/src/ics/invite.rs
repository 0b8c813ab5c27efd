//! An event as an iTIP object (RFC 5546), to be sent to its attendees or handed to the user.

use std::time::SystemTime;

use jiff::Timestamp;
use quarterdeck_contracts::{Event, NoticeKind};

use super::write::IcsWriter;
use crate::config::Owner;

/// Writes an invitation, an update or a cancellation. Times are UTC. A time that cannot be read leaves its line out.
pub fn invitation(event: &Event, kind: NoticeKind, owner: &Owner, now: SystemTime) -> String {
    let mut file = IcsWriter::default();
    file.begin(Some(kind.method()));
    file.line("BEGIN:VEVENT");
    let (uid, original) = match crate::change::OccurrenceId::readings(&event.id).pop() {
        Some(id) => (id.uid, id.occurrence),
        None => (event.id.clone(), None),
    };
    file.text("UID", &uid);
    file.line(&format!("SEQUENCE:{}", event.sequence));
    if let Ok(now) = Timestamp::try_from(now) {
        file.instant("DTSTAMP", now);
    }
    if let Some(original) = original {
        file.instant("RECURRENCE-ID", original);
    }
    for (name, time) in [("DTSTART", &event.start), ("DTEND", &event.end)] {
        if let Ok(time) = time.parse() {
            file.instant(name, time);
        }
    }
    file.text("SUMMARY", &event.summary);
    if !event.description.is_empty() {
        file.text("DESCRIPTION", &event.description);
    }
    if !owner.email.is_empty() {
        file.person("ORGANIZER", &owner.name, &owner.email);
    }
    for attendee in &event.attendees {
        match kind {
            NoticeKind::Invitation | NoticeKind::Update => file.invitee(attendee),
            NoticeKind::Cancellation => file.attendee(attendee),
        }
    }
    if let Some(url) = &event.conference {
        file.conference(url);
    }
    if kind == NoticeKind::Cancellation {
        file.line("STATUS:CANCELLED");
    }
    file.line("END:VEVENT");
    file.end()
}
