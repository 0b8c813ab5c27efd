//! Time zones by name: `Europe/Berlin`, “Berlin time”, “UTC”.

use std::ops::Range;

use jiff::tz::TimeZone;

use super::TimeExpression;
use crate::words::Token;

pub(super) fn read(rest: &[Token<'_>]) -> Option<(usize, TimeExpression)> {
    let (count, name) = named(rest, true)?;
    Some((count, TimeExpression::Zone(TimeZone::get(&name).ok()?)))
}

/// The first zone that the tokens name, with its place.
pub(crate) fn find(tokens: &[Token<'_>]) -> Option<(Range<usize>, String)> {
    all(tokens).into_iter().next()
}

/// Every zone that the tokens name. A city counts after “in”, or before “time”.
pub(crate) fn all(tokens: &[Token<'_>]) -> Vec<(Range<usize>, String)> {
    let mut zones = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_after_in = at > 0 && matches!(tokens[at - 1].lower.as_str(), "in" | "to" | "for");
        match named(&tokens[at..], !is_after_in) {
            Some((count, name)) => {
                zones.push((at..at + count, name));
                at += count;
            }
            None => at += 1,
        }
    }
    zones
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
    if needs_time && !first.text.starts_with(char::is_uppercase) {
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
    // Some countries are names of zones themselves: `Japan`.
    let is_it = |name: &str| match name.rsplit_once('/') {
        Some((region, last)) => region != "Etc" && last.eq_ignore_ascii_case(city),
        None => name.len() > 3 && name.eq_ignore_ascii_case(city),
    };
    names.map(|name| name.as_str().to_owned()).find(|name| is_it(name))
}
