//! From rows to a file.

use jiff::Timestamp;

use crate::moment::Moment;
use crate::row::{Details, EventRow, Status};
use crate::rule::compact;

use super::event::BOOKED_BY;
use super::text::escape;

/// RFC 5545.
const MAX_LINE_BYTES: usize = 75;

/// Writes events as a file that any calendar program reads. The same rows give the same bytes.
pub fn export(rows: &[EventRow]) -> String {
    let mut file = IcsWriter::default();
    file.begin(None);
    rows.iter().for_each(|row| file.row(row, None));
    file.end()
}

/// Writes one event for a server that keeps it for us, with whose booking it is. A file for others does not say that.
pub fn write_object(row: &EventRow) -> String {
    let mut file = IcsWriter::default();
    file.begin(None);
    file.row(row, row.booked_by.as_deref());
    file.end()
}

#[derive(Default)]
pub(super) struct IcsWriter(String);

impl IcsWriter {
    pub(super) fn begin(&mut self, method: Option<&str>) {
        self.line("BEGIN:VCALENDAR");
        self.line("VERSION:2.0");
        self.line("PRODID:-//Quarterdeck//Calendar//EN");
        if let Some(method) = method {
            self.line(&format!("METHOD:{method}"));
        }
    }

    pub(super) fn end(mut self) -> String {
        self.line("END:VCALENDAR");
        self.0
    }

    /// An event with its exceptions.
    fn row(&mut self, row: &EventRow, owner: Option<&str>) {
        self.event(row, &row.details, owner, |file| {
            for rule in &row.rules {
                file.line(&format!("RRULE:{rule}"));
            }
            row.also.iter().for_each(|date| file.moment("RDATE", date));
            row.except.iter().for_each(|date| file.moment("EXDATE", date));
        });
        for changed in &row.overrides {
            self.event(row, &changed.details, owner, |file| {
                file.moment("RECURRENCE-ID", &changed.instead_of)
            });
        }
    }

    fn event(
        &mut self,
        row: &EventRow,
        details: &Details,
        owner: Option<&str>,
        more: impl FnOnce(&mut Self),
    ) {
        self.line("BEGIN:VEVENT");
        self.text("UID", &row.uid);
        match &row.stamp {
            Some(stamp) => self.moment("DTSTAMP", stamp),
            // The format demands one, and none is known.
            None => self.line("DTSTAMP:19700101T000000Z"),
        }
        self.moment("DTSTART", &details.start);
        self.moment("DTEND", &details.end);
        more(self);
        self.text("SUMMARY", &details.summary);
        for (name, text) in [("DESCRIPTION", &details.description), ("LOCATION", &details.location)] {
            if !text.is_empty() {
                self.text(name, text);
            }
        }
        details.attendees.iter().for_each(|attendee| self.attendee(attendee));
        if let Some(url) = &details.conference {
            self.conference(url);
        }
        if let Some(owner) = owner {
            self.text(BOOKED_BY, owner);
        }
        if row.sequence > 0 {
            self.line(&format!("SEQUENCE:{}", row.sequence));
        }
        match details.status {
            Status::Confirmed => {}
            Status::Tentative => self.line("STATUS:TENTATIVE"),
            Status::Cancelled => self.line("STATUS:CANCELLED"),
        }
        if details.free {
            self.line("TRANSP:TRANSPARENT");
        }
        self.line("END:VEVENT");
    }

    pub(super) fn attendee(&mut self, address: &str) {
        self.line(&format!("ATTENDEE:mailto:{}", one_line(address)));
    }

    /// Someone who is asked to answer: without `RSVP` most programs show no buttons for that.
    pub(super) fn invitee(&mut self, address: &str) {
        let parameters = "ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE";
        self.line(&format!("ATTENDEE;{parameters}:mailto:{}", one_line(address)));
    }

    /// A name in quotation marks cannot hold one.
    pub(super) fn person(&mut self, role: &str, name: &str, address: &str) {
        let name = one_line(name).replace('"', "'");
        let name = if name.is_empty() { name } else { format!(";CN=\"{name}\"") };
        self.line(&format!("{role}{name}:mailto:{}", one_line(address)));
    }

    pub(super) fn conference(&mut self, url: &str) {
        self.line(&format!("CONFERENCE;VALUE=URI:{}", one_line(url)));
    }

    pub(super) fn instant(&mut self, name: &str, instant: Timestamp) {
        self.moment(name, &Moment::Utc(instant));
    }

    pub(super) fn moment(&mut self, name: &str, moment: &Moment) {
        let wall = compact(moment.wall());
        self.line(&match moment {
            Moment::Utc(_) => format!("{name}:{wall}Z"),
            Moment::Zoned(_, zone) => format!("{name};TZID={}:{wall}", zone.as_str()),
            Moment::Floating(_) => format!("{name}:{wall}"),
            Moment::Date(_) => format!("{name};VALUE=DATE:{}", &wall[..8]),
        });
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.line(&format!("{name}:{}", escape(text)));
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// Lines that have been written already.
    pub(super) fn raw(&mut self, lines: &str) {
        self.0.push_str(lines);
    }

    /// A content line, folded where it is too long and never inside a character.
    pub(super) fn line(&mut self, line: &str) {
        let mut left = MAX_LINE_BYTES;
        for c in line.chars() {
            if c.len_utf8() > left {
                self.0.push_str("\r\n ");
                left = MAX_LINE_BYTES - 1;
            }
            self.0.push(c);
            left -= c.len_utf8();
        }
        self.0.push_str("\r\n");
    }
}

/// What cannot be escaped must not begin a new line.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
