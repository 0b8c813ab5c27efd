//! Time zones by name: `Europe/Berlin`, “Berlin time”, “UTC”.

use jiff::tz::TimeZone;

use super::TimeExpression;
use crate::words::Token;

pub(super) fn read(rest: &[Token<'_>]) -> Option<(usize, TimeExpression)> {
    let (count, name) = named(rest, true)?;
    Some((count, TimeExpression::Zone(TimeZone::get(&name).ok()?)))
}

/// The first zone that the tokens name, with its place. A city counts after “in”, or before “time”.
pub(crate) fn find(tokens: &[Token<'_>]) -> Option<(std::ops::Range<usize>, String)> {
    (0..tokens.len()).find_map(|at| {
        let is_after_in = at > 0 && tokens[at - 1].lower == "in";
        let (count, name) = named(&tokens[at..], !is_after_in)?;
        Some((at..at + count, name))
    })
}

/// A zone at the beginning: its own name, or its city.
fn named(rest: &[Token<'_>], needs_time: bool) -> Option<(usize, String)> {
    let first = rest.first()?;
    if matches!(first.lower.as_str(), "utc" | "gmt") {
        return Some((1, "UTC".into()));
    }
    if first.text.contains('/') {
        let zone = TimeZone::get(first.text).ok()?;
        return Some((1, zone.iana_name()?.to_owned()));
    }
    if !first.text.starts_with(char::is_uppercase) {
        return None;
    }
    (1..=3).rev().find_map(|count| {
        let words = rest.get(..count)?;
        let is_time = rest.get(count).is_some_and(|token| token.lower == "time");
        let city: Vec<&str> = words.iter().map(|token| token.lower.as_str()).collect();
        let city = city.join("_");
        let zone = (is_time || !needs_time).then(|| of_city(&city))??;
        Some((count + usize::from(is_time), zone))
    })
}

fn of_city(city: &str) -> Option<String> {
    let names = jiff::tz::db().available();
    let is_it = |name: &str| {
        name.rsplit_once('/').is_some_and(|(region, last)| region != "Etc" && last.eq_ignore_ascii_case(city))
    };
    names.map(|name| name.as_str().to_owned()).find(|name| is_it(name))
}
