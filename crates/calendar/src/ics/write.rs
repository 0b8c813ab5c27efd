//! From rows to a file.

use crate::moment::Moment;
use crate::row::{Details, EventRow, Status};
use crate::rule::compact;

use super::text::escape;

/// RFC 5545.
const MAX_LINE_BYTES: usize = 75;

/// Writes events as a file that any calendar program reads. The same rows give the same bytes.
pub fn export(rows: &[EventRow]) -> String {
    let mut file = IcsWriter::default();
    file.line("BEGIN:VCALENDAR");
    file.line("VERSION:2.0");
    file.line("PRODID:-//Quarterdeck//Calendar//EN");
    for row in rows {
        file.event(row, &row.details, |file| {
            for rule in &row.rules {
                file.line(&format!("RRULE:{rule}"));
            }
            row.also.iter().for_each(|date| file.moment("RDATE", date));
            row.except.iter().for_each(|date| file.moment("EXDATE", date));
        });
        for changed in &row.overrides {
            file.event(row, &changed.details, |file| file.moment("RECURRENCE-ID", &changed.instead_of));
        }
    }
    file.line("END:VCALENDAR");
    file.0
}

#[derive(Default)]
struct IcsWriter(String);

impl IcsWriter {
    fn event(&mut self, row: &EventRow, details: &Details, more: impl FnOnce(&mut Self)) {
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
        for attendee in &details.attendees {
            self.line(&format!("ATTENDEE:mailto:{}", one_line(attendee)));
        }
        if let Some(url) = &details.conference {
            self.line(&format!("CONFERENCE;VALUE=URI:{}", one_line(url)));
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

    fn moment(&mut self, name: &str, moment: &Moment) {
        let wall = compact(moment.wall());
        self.line(&match moment {
            Moment::Utc(_) => format!("{name}:{wall}Z"),
            Moment::Zoned(_, zone) => format!("{name};TZID={}:{wall}", zone.as_str()),
            Moment::Floating(_) => format!("{name}:{wall}"),
            Moment::Date(_) => format!("{name};VALUE=DATE:{}", &wall[..8]),
        });
    }

    fn text(&mut self, name: &str, text: &str) {
        self.line(&format!("{name}:{}", escape(text)));
    }

    /// A content line, folded where it is too long and never inside a character.
    fn line(&mut self, line: &str) {
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
