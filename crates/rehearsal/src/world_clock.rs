//! Times in other time zones: “What time is it in Tokyo?”, “What is 15:00 in New York?”.

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::parameter::Kind;
use crate::reply::Reply;
use crate::toolbox::Tool;
use crate::{when, words};

/// The call that converts, if the message asks for a time elsewhere. The tool is the one that takes a moment and a zone.
pub(crate) fn ask(context: &Context<'_>) -> Option<Reply> {
    let tokens = words::tokens(context.message.text, 40);
    let lower: Vec<&str> = tokens.iter().map(|token| token.lower.as_str()).collect();
    let has = |known: &[&str]| lower.iter().any(|word| known.contains(word));
    let when = when::read(&tokens, &context.now);
    let asks = has(&["what", "what's", "when", "convert", "tell", "which"]);
    let is_about_time =
        has(&["time", "clock", "o'clock", "hour"]) || when.time.is_some() || when.moment.is_some();
    if !asks || !is_about_time || has(&["book", "meeting", "free", "schedule", "cancel", "move"]) {
        return None;
    }
    let (tool, moment_name, zone_name) = context.toolbox.tools.iter().find_map(converter)?;
    let zones = when::all_zones(&tokens);
    if zones.is_empty() {
        return unknown_place(&lower, when.time.is_some());
    }
    let own = context.now.zone_name.as_str();
    let said_at = when.used.iter().copied().find(|at| zones.iter().all(|(place, _)| !place.contains(at)));
    // The zone that stands right behind the time is the one it is meant in.
    let is_behind = |place: &std::ops::Range<usize>| {
        said_at.is_some_and(|at| {
            place.start > at
                && place.start <= at + 4
                && !tokens[at..place.start].iter().any(|it| it.after == Some(','))
        })
    };
    let is_mine = has(&["here", "me", "my", "mine", "local", "us", "our"]);
    let (from, to) = match zones.as_slice() {
        [(first, a), (_, b), ..] if when.time.is_some() => {
            if is_behind(first) {
                (a.as_str(), b.as_str())
            } else {
                (b.as_str(), a.as_str())
            }
        }
        [(place, only)] if is_mine && is_behind(place) => (only.as_str(), own),
        [.., (_, last)] => (own, last.as_str()),
        [] => return None,
    };
    let moment = moment(context, &when, from)?;
    let mut arguments = Map::new();
    arguments.insert(moment_name.into(), moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().into());
    arguments.insert(zone_name.into(), to.into());
    Some(Reply::call(tool.name, Value::Object(arguments)))
}

fn converter<'t, 'a>(tool: &'t Tool<'a>) -> Option<(&'t Tool<'a>, &'a str, &'a str)> {
    let find = |kind: Kind| {
        tool.properties().find(|(name, schema)| Kind::of(name, schema) == kind).map(|(name, _)| name)
    };
    let needs_only_moment = tool.properties().filter(|(name, _)| tool.requires(name)).count() == 1;
    (needs_only_moment && !tool.is_action()).then_some(())?;
    Some((tool, find(Kind::Moment).filter(|name| tool.requires(name))?, find(Kind::Zone)?))
}

fn moment(context: &Context<'_>, when: &when::When, zone: &str) -> Option<Zoned> {
    let zone = TimeZone::get(zone).ok()?;
    let there = context.now.moment()?.with_time_zone(zone.clone());
    if let Some(moment) = &when.moment {
        return Some(moment.clone());
    }
    let Some(time) = when.time else { return Some(there) };
    when.date.unwrap_or_else(|| there.date()).to_datetime(time).to_zoned(zone).ok()
}

/// “What time is it in Boston?”: only zones of the database are known.
fn unknown_place(lower: &[&str], has_time: bool) -> Option<Reply> {
    let place = lower.iter().position(|word| *word == "in").and_then(|at| lower.get(at + 1))?;
    let is_asked =
        matches!(lower, ["what", "time", "is", "it", "in", ..] | ["what's", "the", "time", "in", ..])
            || (has_time && matches!(lower, ["what", "is", ..]));
    let is_place = !words::is_stop_word(place) && !place.starts_with(|it: char| it.is_ascii_digit());
    (is_asked && is_place).then(|| {
        Reply::say("I do not know which time zone that is. Please name a larger city of the zone, such as Tokyo or New York.")
    })
}
