//! One `VEVENT`.

use std::collections::BTreeMap;

use jiff::Span;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::component::Component;
use super::line::Line;
use super::text::unescape;
use super::zone;
use crate::moment::Moment;
use crate::row::{Details, Status};
use crate::rule::{Budget, BudgetExceeded, Rule};

/// Dates in one `RDATE` or `EXDATE` list.
const MAX_LISTED_DATES: usize = 5_000;

#[derive(Debug)]
pub(super) struct ParsedEvent {
    pub(super) uid: String,
    pub(super) details: Details,
    pub(super) rules: Vec<String>,
    pub(super) also: Vec<Moment>,
    pub(super) except: Vec<Moment>,
    /// Set for an occurrence that differs from its series.
    pub(super) instead_of: Option<Moment>,
    pub(super) stamp: Option<Moment>,
    pub(super) sequence: u32,
    /// The client whose booking it is, if the file is to be believed.
    pub(super) booked_by: Option<String>,
    /// What was changed on import, and why.
    pub(super) notes: Vec<String>,
}

/// The private property that keeps whose booking an event is.
pub(super) const BOOKED_BY: &str = "X-QUARTERDECK-BOOKED-BY";

fn is_client_id(id: &str) -> bool {
    (1..=256).contains(&id.len())
}

type Zones = BTreeMap<String, String>;

/// Reads an event. The error says what it does that cannot be taken: "has no start".
pub(super) fn parse(event: &Component, zones: &Zones, budget: &mut Budget) -> Result<ParsedEvent, String> {
    let uid = event.find("UID").map(|line| unescape(line.value.trim())).unwrap_or_default();
    if uid.is_empty() || uid.len() > 1_000 {
        return Err("has no UID, or one that is too long".into());
    }
    let start = moment(event.find("DTSTART").ok_or("has no start")?, zones)?;
    let end = end(event, &start, zones)?;
    let home = TimeZone::UTC;
    if start.instant(&home).is_none() || end.instant(&home).is_none() {
        return Err("lies outside the calendar".into());
    }
    if end.instant(&home) < start.instant(&home) {
        return Err("ends before it begins".into());
    }

    let mut notes = Vec::new();
    if event.find("EXRULE").is_some() {
        notes.push("has an EXRULE, which is not followed: it may look busier than it is".to_owned());
    }
    let instead_of = event.find("RECURRENCE-ID").map(|line| {
        if line.parameter("RANGE").is_some() {
            notes.push("changes all later occurrences too; only the one is changed".to_owned());
        }
        moment(line, zones)
    });
    let rules: Vec<String> = event.all("RRULE").map(|line| line.value.trim().to_owned()).collect();
    for rule in &rules {
        match Rule::parse(rule)?.has_occurrence(&start, &home, budget) {
            Ok(true) => {}
            Ok(false) => return Err("has a rule that never comes to pass".into()),
            Err(BudgetExceeded) => {
                return Err("has a rule, and the file has too many that take long to follow".into());
            }
        }
    }
    Ok(ParsedEvent {
        uid,
        details: details(event, start, end),
        rules,
        also: dates(event, "RDATE", zones)?,
        except: dates(event, "EXDATE", zones)?,
        instead_of: instead_of.transpose()?,
        sequence: event.find("SEQUENCE").and_then(|line| line.value.trim().parse().ok()).unwrap_or(0),
        booked_by: event.find(BOOKED_BY).map(|line| unescape(&line.value)).filter(|id| is_client_id(id)),
        stamp: event.find("DTSTAMP").and_then(|line| moment(line, zones).ok()),
        notes,
    })
}

fn details(event: &Component, start: Moment, end: Moment) -> Details {
    let text = |name| event.find(name).map(|line| unescape(&line.value)).unwrap_or_default();
    let is = |name, value: &str| {
        event.find(name).is_some_and(|line| line.value.trim().eq_ignore_ascii_case(value))
    };
    let status = if is("STATUS", "CANCELLED") {
        Status::Cancelled
    } else if is("STATUS", "TENTATIVE") {
        Status::Tentative
    } else {
        Status::Confirmed
    };
    Details {
        start,
        end,
        summary: text("SUMMARY"),
        description: text("DESCRIPTION"),
        location: text("LOCATION"),
        attendees: event.all("ATTENDEE").filter_map(address).collect(),
        conference: event.find("CONFERENCE").map(|line| line.value.trim().to_owned()),
        status,
        free: is("TRANSP", "TRANSPARENT") || is("X-MICROSOFT-CDO-BUSYSTATUS", "FREE"),
    }
}

/// The e-mail address of an attendee, if that is how they are named.
fn address(line: &Line) -> Option<String> {
    let value = line.value.trim();
    let is_mail = value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    let address = if is_mail { &value[7..] } else { value };
    (address.contains('@') && !address.chars().any(char::is_control)).then(|| address.to_owned())
}

fn end(event: &Component, start: &Moment, zones: &Zones) -> Result<Moment, String> {
    if let Some(line) = event.find("DTEND") {
        let end = moment(line, zones)?;
        if end.is_date() != start.is_date() {
            return Err("begins with a day and ends with a time, or the other way round".into());
        }
        return Ok(end);
    }
    let outside = || "lies outside the calendar".to_owned();
    if let Some(line) = event.find("DURATION") {
        let bad = || format!("has a duration that cannot be read (line {})", line.number);
        let span: Span = line.value.trim().parse().map_err(|_| bad())?;
        return later(start, span).ok_or_else(outside);
    }
    // Without an end, a day is one day and a time takes none.
    if start.is_date() { start.next_day().ok_or_else(outside) } else { Ok(start.clone()) }
}

/// Days by the clock on the wall, hours as they pass.
fn later(start: &Moment, span: Span) -> Option<Moment> {
    let zone = start.zone(&TimeZone::UTC);
    let end = start.wall().to_zoned(zone).ok()?.checked_add(span).ok()?;
    start.at_wall(end.datetime())
}

fn dates(event: &Component, name: &str, zones: &Zones) -> Result<Vec<Moment>, String> {
    let mut dates = Vec::new();
    for line in event.all(name) {
        for value in line.value.split(',').filter(|value| !value.trim().is_empty()) {
            // A period begins when it begins; its own length is not kept.
            let begin = value.split('/').next().unwrap_or(value);
            dates.push(moment_of(begin, line, zones)?);
            if dates.len() > MAX_LISTED_DATES {
                return Err(format!("lists more than {MAX_LISTED_DATES} dates in {name}"));
            }
        }
    }
    Ok(dates)
}

pub(super) fn moment(line: &Line, zones: &Zones) -> Result<Moment, String> {
    moment_of(&line.value, line, zones)
}

/// `20260113T090000Z`, `20260113T090000` here or in a zone, or `20260113`.
fn moment_of(value: &str, line: &Line, zones: &Zones) -> Result<Moment, String> {
    let value = value.trim();
    let bad = || format!("has a {} that cannot be read (line {})", line.name, line.number);
    if value.len() == 8 {
        return value.parse().map(Moment::Date).map_err(|_| bad());
    }
    let is_time = |text: &str| text.len() == 15 && text.as_bytes()[8].eq_ignore_ascii_case(&b'T');
    let wall = |text: &str| -> Result<DateTime, String> {
        if is_time(text) { text.parse().map_err(|_| bad()) } else { Err(bad()) }
    };
    if let Some(utc) = value.strip_suffix(['Z', 'z']) {
        return TimeZone::UTC.to_timestamp(wall(utc)?).map(Moment::Utc).map_err(|_| bad());
    }
    let wall = wall(value)?;
    match line.parameter("TZID") {
        None => Ok(Moment::Floating(wall)),
        Some(name) => match zone::find(name, zones) {
            Some(zone) => Ok(Moment::Zoned(wall, zone)),
            None => Err(format!("is in the time zone {name:?}, which is not known")),
        },
    }
}
