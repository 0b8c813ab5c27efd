//! Texts among the arguments: names, titles, questions, pasted text, zones and languages.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::{Argument, Filler};
use crate::evidence::capitalised;
use crate::parameter::{Kind, name_words};
use crate::sentences::shorten;
use crate::{when, words};

type Found = (String, BTreeSet<usize>);

impl Filler<'_, '_> {
    pub(super) fn text(
        &self,
        name: &str,
        kind: Kind,
        schema: &Value,
        is_needed: bool,
        used: &BTreeSet<usize>,
    ) -> Option<Argument> {
        let message = self.message;
        let (text, places) = match kind {
            Kind::Address => {
                return self.addresses(schema, schema.get("format").is_some()).into_iter().next();
            }
            Kind::Link => message
                .links
                .first()
                .map(|at| (message.tokens[*at].text.to_owned(), BTreeSet::from([*at])))?,
            Kind::Zone => self.zone(),
            Kind::Locale => self.locale(),
            Kind::Request => self.request()?,
            Kind::Id => self.id(name, schema)?,
            Kind::Title if is_needed => self.title(used)?,
            Kind::Text if is_needed => self.pasted()?,
            Kind::Name => self.words(used, false)?,
            Kind::Words if is_needed => self.words(used, true)?,
            // What may be left out and is not asked for by name is left out.
            _ => return None,
        };
        let bound =
            |key: &str, or: u64| schema.get(key).and_then(Value::as_u64).unwrap_or(or).min(10_000) as usize;
        let fits = text.chars().count() >= bound("minLength", 0);
        fits.then(|| (shorten(&text, bound("maxLength", 10_000)).into(), places))
    }

    /// The zone that is named, or else the user's own.
    fn zone(&self) -> Found {
        match when::find_zone(&self.message.tokens) {
            Some((place, zone)) => (zone, place.collect()),
            None => (self.fill_context.now.zone_name.clone(), BTreeSet::new()),
        }
    }

    /// The language that is named, or else English: that is what is said around it.
    fn locale(&self) -> Found {
        for (at, token) in self.message.tokens.iter().enumerate() {
            if let Some((_, tag)) = LANGUAGES.iter().find(|(name, _)| *name == token.lower) {
                return ((*tag).to_owned(), BTreeSet::from([at]));
            }
        }
        let own = self.fill_context.now.locale.as_str();
        (if own.starts_with("en") { own } else { "en-GB" }.to_owned(), BTreeSet::new())
    }

    /// What the user wanted before, or says besides: the tool does not see this conversation.
    fn request(&self) -> Option<Found> {
        if let Some(topic) = self.message.topic.clone() {
            return Some((format!("Wants to talk about {}.", self.message.written(topic)), BTreeSet::new()));
        }
        let before = self.fill_context.before?;
        Some((format!("Asked before: “{}”", shorten(before, 400)), BTreeSet::new()))
    }

    /// `doc:hull`, `#5521`, `A-17`: within the pattern, as far as it says how an id begins.
    fn id(&self, name: &str, schema: &Value) -> Option<Found> {
        let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
        let beginning = pattern.strip_prefix('^').unwrap_or_default();
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, ':' | '-' | '_');
        let beginning = beginning.split(|it: char| !is_plain(it)).next().unwrap_or_default();
        let is_record = |text: &str| {
            text.split_once(':').is_some_and(|(kind, slug)| {
                !kind.is_empty()
                    && kind.bytes().all(|it| it.is_ascii_lowercase())
                    && slug.len() > 1
                    && !slug.starts_with('/')
            })
        };
        // A small number alone is rather a count or an hour.
        let is_number =
            |text: &str| name != "id" && text.len() > 2 && text.bytes().any(|it| it.is_ascii_digit());
        let tokens = &self.message.tokens;
        let free = tokens.iter().enumerate().filter(|(at, _)| !self.message.when.used.contains(at));
        let ids = free.map(|(at, token)| (at, token.text.trim_start_matches('#')));
        let ids = ids.filter(|(_, text)| text.starts_with(beginning) && (is_record(text) || is_number(text)));
        // “2 of order 5521”: the one that stands after the name of its thing.
        let words = name_words(name);
        let is_named = |at: usize| at > 0 && words.contains(&tokens[at - 1].lower);
        let (at, text) = ids.max_by_key(|(at, _)| (is_named(*at), std::cmp::Reverse(*at)))?;
        Some((text.to_owned(), BTreeSet::from([at])))
    }

    /// “Meeting about the budget”, “Lunch with Anna”; for anything else, its topic.
    fn title(&self, used: &BTreeSet<usize>) -> Option<Found> {
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
        let address = message.addresses.first().map(|at| message.tokens[*at].text);
        if let Some(topic) = topic {
            title = format!("{title} about {}", message.written(topic));
        } else if let Some(with) = name.map(|name| message.written(name.clone())).or(address) {
            title = format!("{title} with {with}");
        }
        places.extend(name.cloned().into_iter().flatten());
        Some((title, places))
    }

    /// What was pasted or quoted, or the whole message when there is something in it to find.
    fn pasted(&self) -> Option<Found> {
        let message = self.message;
        if let Some(text) = message.payload.or_else(|| message.quoted.first().copied()) {
            return Some((text.to_owned(), message.place(text).collect()));
        }
        let used: BTreeSet<usize> = message.addresses.iter().chain(&message.links).copied().collect();
        (!used.is_empty()).then(|| (message.text.to_owned(), used))
    }

    /// A name; or what is quoted or follows a colon, where any words will do; or else what is left over.
    fn words(&self, used: &BTreeSet<usize>, is_any: bool) -> Option<Found> {
        let message = self.message;
        if let Some(text) = message.quoted.first().copied().or(message.payload).filter(|_| is_any) {
            return Some((text.to_owned(), message.place(text).collect()));
        }
        let is_free = |place: &&Range<usize>| (*place).clone().all(|at| !used.contains(&at));
        let place = message.names.iter().find(is_free).cloned().or_else(|| self.residue(used))?;
        let text = message.written(place.clone());
        let text = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s")).unwrap_or(text);
        Some((text.to_owned(), place.collect()))
    }

    /// The longest run of words that are neither the tool's nor used: the rest must be the value.
    fn residue(&self, used: &BTreeSet<usize>) -> Option<Range<usize>> {
        let tokens = &self.message.tokens;
        let is_free = |at: &usize| {
            let lower = tokens[*at].lower.as_str();
            !used.contains(at)
                && !self.message.when.used.contains(at)
                && words::stems(lower).next().is_some()
                && !(self.fill_context.is_tool_word)(lower)
        };
        let run = |start: usize| start..(start..tokens.len()).find(|at| !is_free(at)).unwrap_or(tokens.len());
        let starts = (0..tokens.len()).filter(|at| is_free(at) && (*at == 0 || !is_free(&(at - 1))));
        starts.map(run).max_by_key(|run| (run.len(), std::cmp::Reverse(run.start)))
    }
}

/// Kinds of events.
#[rustfmt::skip]
const OCCASIONS: &[&str] = &[
    "meeting", "call", "appointment", "lunch", "dinner", "breakfast", "coffee", "interview", "review", "workshop", "demo", "session",
    "chat", "standup", "event",
];

/// Languages by their English names, and what to call them in a tag.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &str)] = &[
    ("arabic", "ar"), ("chinese", "zh"), ("czech", "cs"), ("danish", "da"), ("dutch", "nl"), ("english", "en"), ("finnish", "fi"),
    ("french", "fr"), ("german", "de"), ("greek", "el"), ("hindi", "hi"), ("italian", "it"), ("japanese", "ja"), ("korean", "ko"),
    ("norwegian", "nb"), ("polish", "pl"), ("portuguese", "pt"), ("russian", "ru"), ("spanish", "es"), ("swedish", "sv"),
    ("turkish", "tr"), ("ukrainian", "uk"),
];
