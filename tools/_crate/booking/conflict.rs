//! The time is taken: which is free instead?

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::{ErrorType, Event, ToolError};
use serde_json::{Value, json};

use super::period::Period;

const MAX_OFFERS: usize = 3;
const SEARCH_WINDOW: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The present is rounded up to a quarter of an hour, so that no slot begins at 09:03:27.
const ROUND_SECONDS: i64 = 15 * 60;

/// Where free time is looked for: a week around what was wanted, and not in the past.
pub(super) fn search_window(wanted: Period, now: Timestamp) -> Period {
    let soon = round_up(now);
    let start = wanted.start.saturating_sub(SEARCH_WINDOW).unwrap_or(soon).max(soon).min(wanted.start);
    let end = wanted.end.saturating_add(SEARCH_WINDOW).unwrap_or(wanted.end);
    Period { start, end }
}

/// Up to three free periods of the same length, one for each gap, nearest first.
pub(super) fn nearest_free(wanted: Period, around: Period, mut busy: Vec<Period>) -> Vec<Period> {
    busy.sort_unstable();
    let length = wanted.length();
    let mut offers = Vec::new();
    let mut free_from = around.start;
    let the_end = Period { start: around.end, end: around.end };
    for period in busy.into_iter().chain([the_end]) {
        offers.extend(fit(
            wanted.start,
            length,
            Period { start: free_from, end: period.start.min(around.end) },
        ));
        free_from = free_from.max(period.end);
    }
    offers.sort_by_key(|offer| (offer.start.duration_since(wanted.start).abs(), offer.start));
    offers.truncate(MAX_OFFERS);
    offers
}

/// The place in a gap that is nearest to a moment.
fn fit(wanted: Timestamp, length: SignedDuration, gap: Period) -> Option<Period> {
    let latest = gap.end.checked_sub(length).ok()?;
    if latest < gap.start {
        return None;
    }
    let start = wanted.clamp(gap.start, latest);
    Some(Period { start, end: start.checked_add(length).ok()? })
}

fn round_up(now: Timestamp) -> Timestamp {
    let seconds = now.as_second() + i64::from(now.subsec_nanosecond() > 0);
    let rounded = seconds + (-seconds).rem_euclid(ROUND_SECONDS);
    Timestamp::from_second(rounded).unwrap_or(now)
}

/// Says what is in the way. What it is about is told of the client's own bookings alone, so that one which was made
/// without its answer arriving is recognised.
pub(super) fn refuse(taken: &[Event], offers: &[Period]) -> ToolError {
    let in_the_way = |event: &Event| {
        let mut shown = json!({ "start": event.start, "end": event.end, "calendar": event.calendar });
        if event.changeable {
            shown["event_id"] = json!(event.id);
            shown["title"] = json!(event.summary);
        }
        shown
    };
    let offer = |period: &Period| json!({ "start": period.start.to_string(), "end": period.end.to_string() });
    let conflicts: Vec<Value> = taken.iter().map(in_the_way).collect();
    let nearest: Vec<Value> = offers.iter().map(offer).collect();
    let suggestion = match offers.first() {
        Some(first) => format!("Propose another time; the nearest free one begins at {}.", first.start),
        None => "Nothing of that length is free within a week; propose a shorter or a later one.".to_owned(),
    };
    let refusal = ToolError::new(ErrorType::Conflict, "The calendar is busy at that time.")
        .with_details(json!({ "conflicts": conflicts, "nearest_free": nearest }))
        .with_suggestion(suggestion);
    ToolError { partial_side_effects: Some(false), ..refusal }
}
