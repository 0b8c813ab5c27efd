//! Takes up one of the free times that were offered because the wanted one was taken.

use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::Value;

use crate::parameter::Kind;
use crate::reading::Reading;
use crate::reply::Reply;
use crate::scene::Scene;
use crate::small_talk::{is_word, phrase};

/// The call that was refused, at the time that the person chooses now.
pub(crate) fn taken(scene: &Scene<'_>) -> Option<Reply> {
    let refused = scene.earlier.last()?.results.last()?;
    let Outcome::Failure(error) = refused.outcome else { return None };
    if error.kind != ErrorType::Conflict {
        return None;
    }
    let moment = |slot: &Value, name: &str| slot.get(name)?.as_str()?.parse::<Timestamp>().ok();
    let offers = error.details.as_ref()?.get("nearest_free")?.as_array()?;
    let offers: Vec<(Zoned, Zoned)> = offers
        .iter()
        .filter_map(|slot| {
            Some((scene.now.local(moment(slot, "start")?), scene.now.local(moment(slot, "end")?)))
        })
        .collect();
    let (start, end) = offers.get(choice(scene, &offers)?)?;

    let tool = scene.toolbox.find(refused.name)?;
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
fn choice(scene: &Scene<'_>, offers: &[(Zoned, Zoned)]) -> Option<usize> {
    let said = phrase(scene.said.text);
    if said.starts_with("no") {
        return None;
    }
    const PLACES: [&[&str]; 3] = [&["first", "1", "1st"], &["second", "2", "2nd"], &["third", "3", "3rd"]];
    let words: Vec<&str> = said.split(' ').collect();
    let place = PLACES.iter().position(|names| names.iter().any(|name| words.contains(name)));
    if let Some(place) = place.filter(|_| words.len() <= 6) {
        return Some(place);
    }
    if is_word(scene.said.text) {
        return Some(0);
    }
    let when = Reading::new(scene.said.text, &scene.now).when;
    let fits = |(start, _): &(Zoned, Zoned)| {
        when.time == Some(start.time()) && when.date.is_none_or(|date| date == start.date())
    };
    offers.iter().position(fits)
}
