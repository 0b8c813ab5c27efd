//! Describes the result of a call in a sentence, by the shape of its data, so that unknown tools work too.

use serde_json::Value;

use crate::context::{CallOutcome, Context};
use crate::parameter::name_words;
use crate::refusal::period;
use crate::sentences::shorten;
use crate::{moderation, now};

const MAX_LISTED: usize = 5;

/// Nothing where the runtime delivers a text itself.
pub(crate) fn describe(context: &Context<'_>, call: &CallOutcome<'_>, data: &Value) -> Option<String> {
    if data.get("finalMessage").is_some() {
        // The goodbye has been said with the call.
        return None;
    }
    if data.get("timeoutUntil").is_some() {
        // Where it is written, the runtime delivers it.
        return moderation::spoken_farewell(context, call);
    }
    let parts = event(context, call, data)
        .or_else(|| events(context, data))
        .or_else(|| free_time(context, call, data))
        .or_else(|| formatted(call, data))
        .or_else(|| validity(call, data))
        .or_else(|| contacts(data))
        .or_else(|| profile(data))
        .or_else(|| voice(data));
    Some(parts.unwrap_or_else(|| anything(context, call, data)))
}

fn text<'v>(data: &'v Value, name: &str) -> Option<&'v str> {
    data.get(name)?.as_str()
}

fn list<'v>(data: &'v Value, name: &str) -> Option<&'v [Value]> {
    data.get(name)?.as_array().map(Vec::as_slice)
}

fn event(context: &Context<'_>, call: &CallOutcome<'_>, data: &Value) -> Option<String> {
    let title = text(data, "title")?;
    let moment =
        |name: &str| text(data, name)?.parse::<jiff::Timestamp>().ok().map(|at| context.now.local(at));
    let when = now::period(&moment("start_time")?, &moment("end_time")?);
    let who: Vec<&str> = list(data, "attendees")
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .take(MAX_LISTED)
        .collect();
    let who = if who.is_empty() { String::new() } else { format!(", with {}", who.join(", ")) };
    let link = text(data, "conference_link")
        .map(|link| format!(" The video call is at {link}."))
        .unwrap_or_default();
    let told = data
        .get("invitations")
        .and_then(|it| text(it, "summary"))
        .map(|it| format!(" {it}"))
        .unwrap_or_default();
    let words = name_words(call.name);
    let has = |word: &str| words.iter().any(|it| it == word);
    let done = match () {
        () if has("cancel") || has("delete") => "is cancelled; it was",
        () if has("move") || has("reschedule") => "is moved to",
        () => "is booked for",
    };
    Some(format!("“{title}” {done} {when} ({}){who}.{link}{told}", context.now.zone_name))
}

/// What is in a calendar. Of the events of others there is the time alone.
fn events(context: &Context<'_>, data: &Value) -> Option<String> {
    let events = list(data, "events")?;
    if events.is_empty() {
        return Some("There is nothing in the calendar in that time.".into());
    }
    let named =
        |event: &Value| {
            let when = period(context, event)?;
            Some(text(event, "title").map_or_else(
                || format!("a time that is taken, {when}"),
                |title| format!("“{title}”, {when}"),
            ))
        };
    let parts: Vec<String> = events.iter().take(MAX_LISTED).filter_map(named).collect();
    let more = events.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Some(format!("In the calendar: {}{more} ({} time).", parts.join("; "), context.now.zone_name))
}

fn free_time(context: &Context<'_>, call: &CallOutcome<'_>, data: &Value) -> Option<String> {
    let slots = list(data, "available_slots")?;
    let asked = call.arguments.and_then(|arguments| {
        let moment = |name: &str| {
            text(arguments, name)?.parse::<jiff::Timestamp>().ok().map(|at| context.now.local(at))
        };
        Some(now::period(&moment("start_date")?, &moment("end_date")?))
    });
    let asked = asked.map(|asked| format!(" ({asked})")).unwrap_or_default();
    if slots.is_empty() {
        return Some(format!("Nothing is free in that time{asked}."));
    }
    let parts: Vec<String> = slots.iter().take(MAX_LISTED).filter_map(|slot| period(context, slot)).collect();
    let more = slots.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let verb = if list(data, "existing_events").is_some_and(<[Value]>::is_empty) {
        "Everything is free"
    } else {
        "Free"
    };
    Some(format!("{verb}: {}{more} ({} time).", parts.join("; "), context.now.zone_name))
}

/// How a moment is written, or what time it is elsewhere: the language is given where that was asked.
fn formatted(call: &CallOutcome<'_>, data: &Value) -> Option<String> {
    let formatted = text(data, "formatted")?;
    let is_written = call.arguments.is_some_and(|it| it.get("locale").is_some());
    Some(match (text(data, "locale"), text(data, "timezone")) {
        (Some(locale), _) if is_written => format!("It is written “{formatted}” ({locale})."),
        (_, Some(zone)) => format!("In {zone} that is {formatted}."),
        _ => format!("That is {formatted}."),
    })
}

fn validity(call: &CallOutcome<'_>, data: &Value) -> Option<String> {
    let is_valid = data.get("valid")?.as_bool()?;
    let given = call
        .arguments
        .and_then(|arguments| arguments.as_object()?.values().next()?.as_str())
        .unwrap_or("that");
    let suggestion = text(data, "suggestion").map(|it| format!(" Did you mean {it}?")).unwrap_or_default();
    if is_valid {
        let normal = text(data, "normalized").filter(|normal| *normal != given.trim());
        let normal = normal.map(|normal| format!("; its normal form is {normal}")).unwrap_or_default();
        return Some(format!(
            "Yes, {} is well-formed{normal}.{suggestion} Whether it exists was not checked.",
            given.trim()
        ));
    }
    let reasons =
        list(data, "reasons").unwrap_or_default().iter().filter_map(|reason| text(reason, "message"));
    let reasons: Vec<&str> = reasons.take(MAX_LISTED).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" {}", reasons.join(" ")) };
    Some(format!("No, {} is not valid.{reasons}{suggestion}", given.trim()))
}

fn contacts(data: &Value) -> Option<String> {
    let (emails, phones, urls) = (list(data, "emails")?, list(data, "phones")?, list(data, "urls")?);
    let values = |found: &[Value], name: &str| -> Vec<String> {
        let value = |it: &Value| text(it, name).or_else(|| text(it, "value")).map(str::to_owned);
        found.iter().take(MAX_LISTED).filter_map(value).collect()
    };
    let mut parts = Vec::new();
    for (found, one, many, field) in [
        (emails, "e-mail address", "e-mail addresses", "value"),
        (phones, "phone number", "phone numbers", "international"),
        (urls, "link", "links", "value"),
    ] {
        if !found.is_empty() {
            let noun = if found.len() == 1 { one } else { many };
            parts.push(format!("{} {noun} ({})", found.len(), values(found, field).join(", ")));
        }
    }
    Some(match parts.is_empty() {
        true => "There is no e-mail address, phone number or link in that text.".into(),
        false => format!("I found {}.", parts.join(", ")),
    })
}

fn profile(data: &Value) -> Option<String> {
    let (name, url) = (text(data, "name")?, text(data, "url")?);
    let id = text(data, "id").map(|id| format!(" [{id}]")).unwrap_or_default();
    Some(format!("{name}: {url}{id}"))
}

fn voice(data: &Value) -> Option<String> {
    let session = data.get("session_id").and(data.get("pending_request"));
    session.map(|_| "Let us talk: accept the call, and your browser will ask for the microphone.".into())
}

/// A sentence that the tool has made itself, or else its plain values.
fn anything(context: &Context<'_>, call: &CallOutcome<'_>, data: &Value) -> String {
    let sentence =
        ["summary", "message", "answer", "text", "description"].iter().find_map(|name| text(data, name));
    if let Some(sentence) = sentence.or_else(|| data.as_str()) {
        return shorten(sentence, 600);
    }
    let label = name_words(call.name).join(" ");
    let Some(fields) = data.as_object().filter(|fields| !fields.is_empty()) else {
        return format!("Done: {label}.");
    };
    let parts = fields
        .iter()
        .take(MAX_LISTED)
        .map(|(name, value)| format!("{}: {}", name_words(name).join(" "), plain(context, value)));
    format!("Done ({label}). {}.", parts.collect::<Vec<_>>().join("; "))
}

fn plain(context: &Context<'_>, value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => match text.parse::<jiff::Timestamp>() {
            Ok(moment) => {
                let local = context.now.local(moment);
                format!("{}, {}", now::day(local.date()), now::clock(local.time()))
            }
            Err(_) => shorten(text, 200),
        },
        Value::Array(items) if items.len() == 1 => "1 item".into(),
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(fields) => {
            let name = fields.get("name").or_else(|| fields.get("title")).or_else(|| fields.get("id"));
            name.and_then(Value::as_str).map_or_else(|| "given".into(), |name| shorten(name, 200))
        }
    }
}
