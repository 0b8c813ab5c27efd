//! Changes of an object that another program may have written: only what changes is touched, everything else is kept as
//! it stands, also what we do not understand.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::component::{Contents, read};
use super::event::moment;
use super::line::unquoted;
use super::write::IcsWriter;
use crate::moment::Moment;
use crate::row::EventRow;
use crate::rule::compact;

/// What every change replaces.
const COUNTERS: [&str; 3] = ["SEQUENCE", "DTSTAMP", "LAST-MODIFIED"];
const TIMES: [&str; 3] = ["DTSTART", "DTEND", "DURATION"];
/// What one occurrence does not have.
const OF_SERIES: [&str; 4] = ["RRULE", "RDATE", "EXDATE", "EXRULE"];

/// Gives an event, or one occurrence, the times that `row` has after [`EventRow::reschedule`]. `None` if the object does
/// not hold it.
pub fn move_in_object(
    text: &str,
    row: &EventRow,
    occurrence: Option<Timestamp>,
    stamp: &Moment,
    home: &TimeZone,
) -> Option<String> {
    let object = ObjectText::parse(text, &row.uid, home)?;
    let (details, original) = match occurrence {
        None => (&row.details, None),
        Some(original) => {
            let changed =
                row.overrides.iter().find(|changed| changed.instead_of.instant(home) == Some(original))?;
            (&changed.details, Some(&changed.instead_of))
        }
    };
    let mut changed = IcsWriter::default();
    changed.moment("DTSTAMP", stamp);
    changed.line(&format!("SEQUENCE:{}", row.sequence));
    changed.instant("DTSTART", details.start.instant(home)?);
    changed.instant("DTEND", details.end.instant(home)?);

    let existing = object.events.iter().position(|event| event.original == occurrence);
    let mut out = IcsWriter::default();
    match (existing, original) {
        (Some(index), _) => object.write(&mut out, |at, out| {
            if at != index {
                return false;
            }
            object.rewrite(index, &[&COUNTERS[..], &TIMES].concat(), changed.as_str(), out);
            true
        }),
        (None, Some(instead_of)) => {
            let series = object.series()?;
            changed.line(&object.in_form_of_start(series, "RECURRENCE-ID", instead_of)?);
            object.write(&mut out, |at, out| {
                if at == series {
                    object.rewrite(series, &[], "", out);
                    object.rewrite(
                        series,
                        &[&COUNTERS[..], &TIMES, &OF_SERIES].concat(),
                        changed.as_str(),
                        out,
                    );
                }
                at == series
            });
        }
        (None, None) => return None,
    }
    Some(out.into_text())
}

/// Takes one occurrence out of a series, as `row` has it after [`EventRow::cancel_occurrence`].
pub fn cancel_in_object(
    text: &str,
    row: &EventRow,
    original: Timestamp,
    stamp: &Moment,
    home: &TimeZone,
) -> Option<String> {
    let object = ObjectText::parse(text, &row.uid, home)?;
    let series = object.series()?;
    let excluded = row.except.iter().find(|except| except.instant(home) == Some(original))?;
    let mut changed = IcsWriter::default();
    changed.moment("DTSTAMP", stamp);
    changed.line(&format!("SEQUENCE:{}", row.sequence));
    changed.line(&object.in_form_of_start(series, "EXDATE", excluded)?);
    let mut out = IcsWriter::default();
    object.write(&mut out, |at, out| {
        if at == series {
            object.rewrite(series, &COUNTERS, changed.as_str(), out);
        }
        at == series || object.events[at].original == Some(original)
    });
    Some(out.into_text())
}

/// The content lines of an object, and where its events are.
struct ObjectText {
    lines: Vec<String>,
    events: Vec<EventLines>,
}

/// The lines from `BEGIN:VEVENT` to its end.
struct EventLines {
    begin: usize,
    end: usize,
    /// Which occurrence of its series it is; `None` for the series itself.
    original: Option<Timestamp>,
}

impl ObjectText {
    fn parse(text: &str, uid: &str, home: &TimeZone) -> Option<Self> {
        let contents = read(text).ok()?;
        let lines = unfold(text);
        let mut events = Vec::new();
        let mut begin = None;
        for (at, line) in lines.iter().enumerate() {
            match line.trim_end().to_ascii_uppercase().as_str() {
                "BEGIN:VEVENT" => begin = begin.or(Some(at)),
                "END:VEVENT" => events.extend(begin.take().map(|begin| (begin, at))),
                _ => {}
            }
        }
        if events.len() != contents.events.len() {
            return None;
        }
        let events = events.into_iter().enumerate().filter_map(|(nth, (begin, end))| {
            let original = original(&contents, nth, uid, home)?;
            Some(EventLines { begin, end, original })
        });
        Some(Self { events: events.collect(), lines })
    }

    fn series(&self) -> Option<usize> {
        self.events.iter().position(|event| event.original.is_none())
    }

    /// Writes everything; of each event, `replace` may write something else and say so.
    fn write(&self, out: &mut IcsWriter, mut replace: impl FnMut(usize, &mut IcsWriter) -> bool) {
        let mut at = 0;
        while let Some(line) = self.lines.get(at) {
            let event = self.events.iter().position(|event| event.begin == at);
            match event {
                Some(index) if replace(index, out) => at = self.events[index].end + 1,
                _ => {
                    out.line(line);
                    at += 1;
                }
            }
        }
    }

    /// Writes an event without some of its properties and with others. What is nested in it stays.
    fn rewrite(&self, index: usize, without: &[&str], with: &str, out: &mut IcsWriter) {
        let event = &self.events[index];
        out.line(&self.lines[event.begin]);
        out.raw(with);
        let mut depth = 0_usize;
        for line in &self.lines[event.begin + 1..event.end] {
            let name = name_of(line);
            depth += usize::from(name == "BEGIN");
            if depth > 0 || !without.contains(&name.as_str()) {
                out.line(line);
            }
            depth = depth.saturating_sub(usize::from(name == "END"));
        }
        out.line(&self.lines[event.end]);
    }

    /// A date in the form that the start of the series has: with its zone, which the object may define itself.
    fn in_form_of_start(&self, series: usize, name: &str, date: &Moment) -> Option<String> {
        let event = &self.events[series];
        let start = self.lines[event.begin..event.end].iter().find(|line| name_of(line) == "DTSTART")?;
        let value_at = unquoted(start, ':').next()?;
        let wall = compact(date.wall());
        let value = match date {
            Moment::Date(_) => wall[..8].to_owned(),
            Moment::Utc(_) => format!("{wall}Z"),
            Moment::Zoned(..) | Moment::Floating(_) => wall,
        };
        Some(format!("{name}{}:{value}", &start["DTSTART".len()..value_at]))
    }
}

/// Which occurrence an event of the object is, if it belongs to the uid.
fn original(contents: &Contents, nth: usize, uid: &str, home: &TimeZone) -> Option<Option<Timestamp>> {
    let event = &contents.events[nth];
    let is_of = event.find("UID").is_some_and(|line| super::text::unescape(line.value.trim()) == uid);
    let original = event.find("RECURRENCE-ID").map(|line| moment(line, &contents.zones).ok()?.instant(home));
    match original {
        _ if !is_of => None,
        None => Some(None),
        Some(known) => known.map(Some),
    }
}

fn name_of(line: &str) -> String {
    let end = line.find([':', ';']).unwrap_or(line.len());
    line[..end].to_ascii_uppercase()
}

fn unfold(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        match lines.last_mut() {
            Some(before) if line.starts_with([' ', '\t']) => before.push_str(&line[1..]),
            _ if line.trim().is_empty() => {}
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}
