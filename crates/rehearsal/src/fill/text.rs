//! Texts among the arguments: names, titles, questions, pasted text, zones and languages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Argument, Filler};
use crate::parameter::{Kind, name_words};
use crate::sentences::shorten;
use crate::when;

impl Filler<'_, '_> {
    pub(super) fn text(
        &self,
        name: &str,
        kind: Kind,
        schema: &Value,
        is_needed: bool,
        used: &BTreeSet<usize>,
    ) -> Option<Argument> {
        let (text, places) = match kind {
            Kind::Address => {
                return self.addresses(schema, schema.get("format").is_some()).into_iter().next();
            }
            Kind::Link => self.link()?,
            Kind::Zone => self.zone(),
            Kind::Locale => self.locale(),
            Kind::Query => (self.message.text.to_owned(), (0..self.message.tokens.len()).collect()),
            Kind::Request => self.request()?,
            Kind::Farewell => ("Goodbye!".to_owned(), BTreeSet::new()),
            Kind::Id => self.id(name, schema)?,
            Kind::Title if is_needed => self.title(used)?,
            Kind::Text if is_needed => self.pasted()?,
            Kind::Name => self.name(used)?,
            Kind::Words if is_needed => self.words(used)?,
            // What may be left out and is not asked for by name is left out.
            _ => return None,
        };
        let most =
            schema.get("maxLength").and_then(Value::as_u64).map_or(10_000, |most| most.min(10_000) as usize);
        let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
        let fits = text.chars().count() >= least;
        fits.then(|| (shorten(&text, most).into(), places))
    }

    fn link(&self) -> Option<(String, BTreeSet<usize>)> {
        let at = *self.message.links.first()?;
        Some((self.message.tokens[at].text.to_owned(), BTreeSet::from([at])))
    }

    /// The zone that is named, or else the user's own.
    fn zone(&self) -> (String, BTreeSet<usize>) {
        match when::find_zone(&self.message.tokens) {
            Some((place, zone)) => (zone, place.collect()),
            None => (self.fill_context.now.zone_name.clone(), BTreeSet::new()),
        }
    }

    /// The language that is named, or else the user's own.
    fn locale(&self) -> (String, BTreeSet<usize>) {
        for (at, token) in self.message.tokens.iter().enumerate() {
            if let Ok(known) = LANGUAGES.binary_search_by_key(&token.lower.as_str(), |(name, _)| name) {
                return (LANGUAGES[known].1.to_owned(), BTreeSet::from([at]));
            }
            let is_tag = token.text.len() == 5
                && token.text.split_once('-').is_some_and(|(language, region)| {
                    let is_language = language.bytes().all(|it| it.is_ascii_lowercase());
                    is_language && language.len() == 2 && region.bytes().all(|it| it.is_ascii_uppercase())
                });
            if is_tag {
                return (token.text.to_owned(), BTreeSet::from([at]));
            }
        }
        (self.fill_context.now.locale.clone(), BTreeSet::new())
    }

    /// What the user wanted before, or says besides: the tool does not see this conversation.
    fn request(&self) -> Option<(String, BTreeSet<usize>)> {
        if let Some(topic) = self.message.topic.clone() {
            let text = format!("Wants to talk about {}.", self.message.written(topic.clone()));
            // “Let us talk about the hull” may be said to a writing partner, so the topic does not speak for a call.
            return Some((text, BTreeSet::new()));
        }
        let before = self.fill_context.before?;
        Some((format!("Asked before: “{}”", shorten(before, 400)), BTreeSet::new()))
    }

    /// `doc:hull`, `#5521`, `A-17`: within the pattern, as far as it says how an id begins.
    fn id(&self, name: &str, schema: &Value) -> Option<(String, BTreeSet<usize>)> {
        let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
        let beginning = pattern.strip_prefix('^').unwrap_or_default();
        let beginning = beginning
            .split(|it: char| !(it.is_ascii_alphanumeric() || matches!(it, ':' | '-' | '_')))
            .next()
            .unwrap_or_default();
        let is_record = |text: &str| {
            text.split_once(':').is_some_and(|(kind, slug)| {
                !kind.is_empty()
                    && kind.bytes().all(|it| it.is_ascii_lowercase())
                    && slug.len() > 1
                    && !slug.starts_with('/')
            })
        };
        let is_number = |text: &str| name != "id" && text.bytes().any(|it| it.is_ascii_digit());
        let is_id = |text: &str| text.starts_with(beginning) && (is_record(text) || is_number(text));
        let tokens = &self.message.tokens;
        let free = tokens.iter().enumerate().filter(|(at, _)| !self.message.when.used.contains(at));
        let ids =
            free.map(|(at, token)| (at, token.text.trim_start_matches('#'))).filter(|(_, text)| is_id(text));
        // “2 of order 5521”: the one that stands after the name of its thing.
        let words = name_words(name);
        let is_named = |at: usize| at > 0 && words.contains(&tokens[at - 1].lower);
        let (at, text) = ids.max_by_key(|(at, _)| (is_named(*at), std::cmp::Reverse(*at)))?;
        Some((text.to_owned(), BTreeSet::from([at])))
    }

    /// “Meeting about the budget”, “Lunch with Anna”; for anything else, its topic.
    fn title(&self, used: &BTreeSet<usize>) -> Option<(String, BTreeSet<usize>)> {
        let message = self.message;
        if let Some(quoted) = message.quoted.first() {
            return Some(((*quoted).to_owned(), message.place(quoted).collect()));
        }
        let topic = message.topic.clone();
        let is_event = self.tool.properties().any(|(name, schema)| Kind::of(name, schema) == Kind::Start);
        if !is_event {
            let place = topic.or_else(|| self.residue(used))?;
            return Some((message.written(place.clone()).to_owned(), place.collect()));
        }
        let noun = message.tokens.iter().position(|token| OCCASIONS.contains(&token.lower.as_str()));
        let mut title = noun.map_or("Meeting".to_owned(), |at| capitalised(&message.tokens[at].lower));
        let mut places: BTreeSet<usize> = topic.clone().into_iter().flatten().chain(noun).collect();
        let name = message.names.iter().find(|name| (*name).clone().all(|at| !places.contains(&at)));
        if let Some(topic) = topic {
            title = format!("{title} about {}", message.written(topic));
        } else if let Some(name) = name {
            title = format!("{title} with {}", message.written(name.clone()));
        } else if let Some((Value::String(address), _)) =
            self.addresses(&Value::Null, true).into_iter().next()
        {
            title = format!("{title} with {address}");
        }
        places.extend(name.cloned().into_iter().flatten());
        Some((title, places))
    }

    /// What was pasted or quoted, or the whole message when there is something in it to find.
    fn pasted(&self) -> Option<(String, BTreeSet<usize>)> {
        let message = self.message;
        let pasted = message.payload.or_else(|| message.quoted.first().copied());
        if let Some(text) = pasted {
            return Some((text.to_owned(), message.place(text).collect()));
        }
        let has_digits =
            message.tokens.iter().any(|token| token.text.bytes().filter(u8::is_ascii_digit).count() > 4);
        if message.addresses.is_empty() && message.links.is_empty() && !has_digits {
            return None;
        }
        let used = message.addresses.iter().chain(&message.links).copied().collect();
        Some((message.text.to_owned(), used))
    }

    fn name(&self, used: &BTreeSet<usize>) -> Option<(String, BTreeSet<usize>)> {
        let free = |place: &&std::ops::Range<usize>| (*place).clone().all(|at| !used.contains(&at));
        let place = self.message.names.iter().find(free).cloned();
        let place = place.or_else(|| self.residue(used))?;
        let name = self.message.written(place.clone());
        let name = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).unwrap_or(name);
        Some((name.to_owned(), place.collect()))
    }

    /// What is quoted, follows a colon, or is left over.
    fn words(&self, used: &BTreeSet<usize>) -> Option<(String, BTreeSet<usize>)> {
        let message = self.message;
        if let Some(text) = message.quoted.first().copied().or(message.payload) {
            return Some((text.to_owned(), message.place(text).collect()));
        }
        let free = |place: &&std::ops::Range<usize>| (*place).clone().all(|at| !used.contains(&at));
        let place = message.names.iter().find(free).cloned().or_else(|| self.residue(used))?;
        Some((message.written(place.clone()).to_owned(), place.collect()))
    }
}

/// Kinds of events.
#[rustfmt::skip]
const OCCASIONS: &[&str] = &[
    "meeting", "call", "appointment", "lunch", "dinner", "breakfast", "coffee", "interview", "review", "workshop",
    "demo", "session", "chat", "standup", "event",
];

/// Languages by their English names, and what to call them in a tag.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &str)] = &[
    ("american", "en-US"), ("arabic", "ar"), ("british", "en-GB"), ("chinese", "zh"), ("czech", "cs"),
    ("danish", "da"), ("dutch", "nl"), ("english", "en"), ("finnish", "fi"), ("french", "fr"),
    ("german", "de"), ("greek", "el"), ("hebrew", "he"), ("hindi", "hi"), ("hungarian", "hu"),
    ("icelandic", "is"), ("indonesian", "id"), ("italian", "it"), ("japanese", "ja"), ("korean", "ko"),
    ("norwegian", "nb"), ("polish", "pl"), ("portuguese", "pt"), ("romanian", "ro"), ("russian", "ru"),
    ("spanish", "es"), ("swedish", "sv"), ("thai", "th"), ("turkish", "tr"), ("ukrainian", "uk"),
    ("vietnamese", "vi"),
];

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_languages_are_in_order_because_they_are_searched_by_halves() {
        assert!(LANGUAGES.is_sorted());
    }
}
