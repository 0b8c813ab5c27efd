//! Accepts one of the free times that were offered after a conflict.

use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::Value;

use crate::context::Context;
use crate::parameter::Kind;
use crate::parsed_message::ParsedMessage;
use crate::reply::Reply;
use crate::small_talk::{is_yes_or_no, phrase};

/// The refused call again, at the time that the user chooses.
pub(crate) fn accept(context: &Context<'_>) -> Option<Reply> {
    let refused = context.earlier.last()?.results.last()?;
    let Outcome::Failure(error) = refused.outcome else { return None };
    if error.kind != ErrorType::Conflict {
        return None;
    }
    let moment = |slot: &Value, name: &str| slot.get(name)?.as_str()?.parse::<Timestamp>().ok();
    let offers = error.details.as_ref()?.get("nearest_free")?.as_array()?;
    let offers: Vec<(Zoned, Zoned)> = offers
        .iter()
        .filter_map(|slot| {
            Some((context.now.local(moment(slot, "start")?), context.now.local(moment(slot, "end")?)))
        })
        .collect();
    let (start, end) = offers.get(choice(context, &offers)?)?;

    let tool = context.toolbox.find(refused.name)?;
    let mut arguments = refused.arguments?.as_object()?.clone();
    for (name, schema) in tool.properties() {
        let moment = match Kind::of(name, schema) {
            Kind::Start => start,
            Kind::End => end,
            _ => continue,
        };
        arguments.insert(name.to_owned(), moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().into());
    }
    Some(Reply::call(tool.name, arguments.into()))
}

/// Which offer is meant: by its place in the list, by its time, or the first by a plain yes.
fn choice(context: &Context<'_>, offers: &[(Zoned, Zoned)]) -> Option<usize> {
    let said = phrase(context.message.text);
    if said.starts_with("no") {
        return None;
    }
    const PLACES: [&[&str]; 3] = [&["first", "1", "1st"], &["second", "2", "2nd"], &["third", "3", "3rd"]];
    let words: Vec<&str> = said.split(' ').collect();
    let place = PLACES.iter().position(|names| names.iter().any(|name| words.contains(name)));
    if let Some(place) = place.filter(|_| words.len() <= 6) {
        return Some(place);
    }
    if is_yes_or_no(context.message.text) {
        return Some(0);
    }
    let when = ParsedMessage::new(context.message.text, &context.now).when;
    let fits = |(start, _): &(Zoned, Zoned)| {
        when.time == Some(start.time()) && when.date.is_none_or(|date| date == start.date())
    };
    offers.iter().position(fits)
}
