//! From a file to rows.

use std::collections::BTreeMap;

use super::component::{Component, read};
use super::event::{ParsedEvent, parse};
use super::{IcsError, Import};
use crate::row::{EventRow, Override};
use crate::rule::Budget;

/// Reads a file for one calendar. Events that cannot be imported are listed in `skipped`; a damaged file is refused as
/// a whole. Whose bookings its events are, a file cannot say.
pub fn import(text: &str, calendar: &str) -> Result<Import, IcsError> {
    let (series, events, skipped) = read_series(text)?;
    let rows = series.into_values().filter_map(|parts| row(parts, calendar));
    let rows = rows.map(|row| EventRow { booked_by: None, ..row });
    Ok(Import { rows: rows.map(|row| (row.key(), row.to_value())).collect(), events, skipped })
}

/// Reads an object of a server that keeps our bookings, and is believed whose they are. The second list says what could not
/// be taken, and why.
pub fn read_rows(text: &str, calendar: &str) -> Result<(Vec<EventRow>, Vec<String>), IcsError> {
    let (series, _, skipped) = read_series(text)?;
    Ok((series.into_values().filter_map(|parts| row(parts, calendar)).collect(), skipped))
}

/// The events of a file by uid, how many there are, and what was not taken.
type Series = (BTreeMap<String, Vec<ParsedEvent>>, usize, Vec<String>);

fn read_series(text: &str) -> Result<Series, IcsError> {
    let contents = read(text)?;
    let mut skipped = Vec::new();
    let mut series: BTreeMap<String, Vec<ParsedEvent>> = BTreeMap::new();
    let mut events = 0;
    let mut budget = Budget::new(Budget::IMPORT);
    for component in &contents.events {
        match parse(component, &contents.zones, &mut budget) {
            Ok(event) => {
                events += 1;
                skipped.extend(event.notes.iter().map(|note| describe(component, note)));
                series.entry(event.uid.clone()).or_default().push(event);
            }
            Err(fault) => skipped.push(describe(component, &fault)),
        }
    }
    Ok((series, events, skipped))
}

/// Puts a series and its exceptions together. Where only exceptions are known, the first stands for the series.
fn row(mut parts: Vec<ParsedEvent>, calendar: &str) -> Option<EventRow> {
    // Of several states of one event, files have the newest last.
    let main = parts.iter().rposition(|part| part.instead_of.is_none()).unwrap_or(0);
    if parts.is_empty() {
        return None;
    }
    let main = parts.remove(main);
    let mut row = EventRow::single(main.uid, calendar.to_owned(), main.details);
    row.rules = main.rules;
    row.also = main.also;
    row.except = main.except;
    row.stamp = main.stamp;
    row.sequence = main.sequence;
    row.booked_by = main.booked_by.map(Into::into);
    for part in parts {
        if let Some(instead_of) = part.instead_of {
            row.overrides.push(Override { instead_of, details: part.details });
        }
    }
    Some(row)
}

/// Names an event by its place and title.
fn describe(component: &Component, fault: &str) -> String {
    let title: String =
        component.find("SUMMARY").map(|line| line.value.chars().take(60).collect()).unwrap_or_default();
    format!("the event {title:?} of line {} {fault}", component.line)
}
