//! Arguments of a tool, from the words of a message.

mod text;

use std::collections::BTreeSet;
use std::ops::Range;

use jiff::{SignedDuration, Zoned};
use serde_json::{Map, Value};

use crate::now::Now;
use crate::parameter::{Kind, name_words, single_type};
use crate::parsed_message::ParsedMessage;
use crate::toolbox::Tool;
use crate::words;

/// Of an appointment. The user sees it before anything is booked.
const DEFAULT_DURATION: SignedDuration = SignedDuration::from_mins(30);

#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) values: Map<String, Value>,
    /// Required parameters without a value.
    pub(crate) missing: Vec<&'a str>,
    /// The tokens that became values.
    pub(crate) used: BTreeSet<usize>,
}

pub(crate) struct FillContext<'a> {
    pub(crate) now: &'a Now,
    /// The question before.
    pub(crate) before: Option<&'a str>,
    /// Whether a stem belongs to the tool's own words, and so to no argument.
    pub(crate) is_tool_word: &'a dyn Fn(&str) -> bool,
}

pub(crate) fn fill<'a>(
    tool: &Tool<'a>,
    message: &ParsedMessage<'_>,
    fill_context: &FillContext<'_>,
) -> Arguments<'a> {
    let mut filled = Arguments::default();
    let filler = Filler { tool, message, fill_context };
    for (name, schema) in tool.properties() {
        let is_needed = tool.requires(name);
        match filler.value(name, schema, is_needed, &filled.used) {
            Some((value, used)) => {
                filled.values.insert(name.to_owned(), value);
                filled.used.extend(used);
            }
            None if is_needed => filled.missing.push(name),
            None => {}
        }
    }
    if filled.values.is_empty() && filled.missing.is_empty() && needs_something(tool) {
        filled.missing.extend(tool.properties().next().map(|(name, _)| name));
    }
    filled
}

/// Whether a tool that requires nothing by its schema is of no use without any argument: none of its parameters has a
/// default, and no example leaves them all out.
fn needs_something(tool: &Tool<'_>) -> bool {
    let has_default = tool.properties().any(|(_, schema)| schema.get("default").is_some());
    let is_shown_empty =
        tool.guide.examples.iter().any(|it| it.arguments.as_object().is_some_and(Map::is_empty));
    !has_default && !is_shown_empty && tool.properties().next().is_some()
}

/// Whether a required parameter takes what no sentence can express.
pub(crate) fn has_inexpressible_parameter(tool: &Tool<'_>) -> bool {
    let judged = |(name, schema): (&str, &Value)| match single_type(schema) {
        Some("array") => schema.get("items").is_none_or(|items| Kind::of(name, items) == Kind::Inexpressible),
        _ => Kind::of(name, schema) == Kind::Inexpressible,
    };
    tool.properties().filter(|(name, _)| tool.requires(name)).any(judged)
}

type Argument = (Value, BTreeSet<usize>);

struct Filler<'f, 'a> {
    tool: &'f Tool<'a>,
    message: &'f ParsedMessage<'f>,
    fill_context: &'f FillContext<'f>,
}

impl Filler<'_, '_> {
    fn value(&self, name: &str, schema: &Value, is_needed: bool, used: &BTreeSet<usize>) -> Option<Argument> {
        if single_type(schema) == Some("array") {
            return self.list(name, schema.get("items")?, is_needed);
        }
        match Kind::of(name, schema) {
            kind @ (Kind::Start | Kind::End | Kind::Moment) => self.moment(kind),
            kind @ (Kind::FirstDay | Kind::LastDay | Kind::Day) => self.day(kind),
            Kind::Choice => {
                self.choices(name, schema).into_iter().next().or_else(|| self.implied_choice(name, schema))
            }
            Kind::Length(unit) => self.length(schema, unit),
            Kind::Number => self.number(name, is_needed, used),
            Kind::Flag => self.flag(name),
            Kind::Inexpressible => None,
            kind => self.text(name, kind, schema, is_needed, used),
        }
    }

    /// Everything in the message that fits the items.
    fn list(&self, name: &str, items: &Value, is_needed: bool) -> Option<Argument> {
        let found: Vec<Argument> = match Kind::of(name, items) {
            Kind::Choice => self.choices(name, items),
            Kind::Address => self.addresses(items, true),
            _ if is_needed => {
                let quoted = self.message.quoted.iter();
                quoted.map(|text| (Value::from(*text), self.message.place(text).collect())).collect()
            }
            // What may be left out and is not named is left out.
            _ => return None,
        };
        let mut values: Vec<Value> = Vec::new();
        let mut used = BTreeSet::new();
        for (value, places) in found {
            used.extend(places);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| (values.into(), used))
    }

    /// The tokens that look like addresses; for invitations only those that could be.
    fn addresses(&self, schema: &Value, only_plausible: bool) -> Vec<Argument> {
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let plausible = |text: &str| {
            let parts = text.split_once('@');
            parts.is_some_and(|(local, domain)| {
                !local.is_empty() && domain.contains('.') && !domain.starts_with('.') && !domain.contains('@')
            })
        };
        let all = self.message.addresses.iter().map(|at| (*at, self.message.tokens[*at].text));
        let fits = |text: &str| text.chars().count() as u64 <= most;
        let kept = all.filter(|(_, text)| fits(text) && (!only_plausible || plausible(text)));
        kept.map(|(at, text)| (Value::from(text), BTreeSet::from([at]))).collect()
    }

    fn moment(&self, kind: Kind) -> Option<Argument> {
        let (when, now) = (&self.message.when, self.fill_context.now);
        let has_start = self.tool.properties().any(|(name, schema)| Kind::of(name, schema) == Kind::Start);
        let is_range = kind != Kind::Moment && !self.tool.is_action() && has_start;
        let moment = match kind {
            Kind::Start if is_range => when.range(now)?.0,
            Kind::End if is_range => when.range(now)?.1,
            Kind::End if has_start => when.finish(now, &when.start(now)?, DEFAULT_DURATION)?,
            // A day alone is a moment for a look-up, not for an appointment.
            Kind::Moment if !self.tool.is_action() => match (when.start(now), when.date) {
                (Some(moment), _) => moment,
                (None, Some(date)) => now.at(date, jiff::civil::Time::MIN)?,
                (None, None) => return None,
            },
            _ => when.start(now)?,
        };
        Some((rfc3339(&moment).into(), self.time_words()))
    }

    fn day(&self, kind: Kind) -> Option<Argument> {
        let when = &self.message.when;
        let date = when.date.or_else(|| when.moment.as_ref().map(Zoned::date))?;
        let date = if kind == Kind::LastDay { when.until.unwrap_or(date) } else { date };
        Some((date.to_string().into(), self.time_words()))
    }

    /// What was said about time, with the “on”, “at” and “from” before it.
    fn time_words(&self) -> BTreeSet<usize> {
        self.message.when.used.clone()
    }

    fn choices(&self, name: &str, schema: &Value) -> Vec<Argument> {
        let known = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut found = Vec::new();
        for (at, token) in self.message.tokens.iter().enumerate() {
            let is_it = |value: &&Value| {
                value.as_str().is_some_and(|value| {
                    value.to_lowercase().replace(['_', '-'], "") == token.lower.replace(['_', '-'], "")
                })
            };
            // A word that the tool uses for itself chooses nothing: “time” in “what time”.
            let is_own = words::stems(&token.lower).all(|stem| (self.fill_context.is_tool_word)(&stem))
                && !name_words(name).contains(&token.lower);
            if let Some(value) = known.iter().find(is_it).filter(|_| !is_own || self.tool.is_action()) {
                found.push((value.clone(), BTreeSet::from([at])));
            }
        }
        found
    }

    /// How something is to be written follows from what was asked about it.
    fn implied_choice(&self, name: &str, schema: &Value) -> Option<Argument> {
        if !matches!(name, "style" | "format") {
            return None;
        }
        let known = schema.get("enum")?.as_array()?;
        let when = &self.message.when;
        let at = |words: &[&str]| {
            self.message.tokens.iter().position(|token| words.contains(&token.lower.as_str()))
        };
        let (value, place) = if let Some(at) = at(&["until", "ago", "away"]) {
            ("relative", Some(at))
        } else if let Some(at) = at(&["aloud", "spoken", "pronounced", "say", "read"]) {
            ("spoken", Some(at))
        } else if when.date.is_some() && when.time.is_none() && when.moment.is_none() {
            ("date", None)
        } else {
            return None;
        };
        known.iter().any(|it| it == value).then(|| (value.into(), place.into_iter().collect()))
    }

    fn length(&self, schema: &Value, unit: i64) -> Option<Argument> {
        let count = self.message.when.length?.as_secs() / unit;
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
        let fits = bound("minimum").is_none_or(|least| count >= least)
            && bound("maximum").is_none_or(|most| count <= most);
        fits.then(|| (count.into(), self.time_words()))
    }

    /// A number beside a word of the parameter's name; any number, if one is needed.
    fn number(&self, name: &str, is_needed: bool, used: &BTreeSet<usize>) -> Option<Argument> {
        let stems: BTreeSet<String> = name_words(name).iter().map(|word| words::stem(word)).collect();
        let tokens = &self.message.tokens;
        let is_named = |at: usize| {
            let near =
                [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| tokens.get(at));
            near.into_iter().any(|token| stems.contains(&words::stem(&token.lower)))
        };
        let numbers = tokens
            .iter()
            .enumerate()
            .filter(|(at, _)| !used.contains(at) && !self.message.when.used.contains(at));
        let mut numbers = numbers.filter_map(|(at, token)| Some((at, plain_number(token.text)?)));
        let all: Vec<(usize, Value)> = numbers.by_ref().collect();
        let found = all.iter().find(|(at, _)| is_named(*at)).or_else(|| all.first().filter(|_| is_needed))?;
        let near = found.0.saturating_sub(1)..(found.0 + 2).min(tokens.len());
        let named = near.filter(|at| stems.contains(&words::stem(&tokens[*at].lower)));
        Some((found.1.clone(), named.chain([found.0]).collect()))
    }

    /// “with details”, “without a link”.
    fn flag(&self, name: &str) -> Option<Argument> {
        let generic = ["include", "with", "is", "has", "enable", "use", "allow", "should"];
        let wanted: Vec<String> =
            name_words(name).into_iter().filter(|word| !generic.contains(&word.as_str())).collect();
        let stems: BTreeSet<String> = wanted.iter().map(|word| words::stem(word)).collect();
        let tokens = &self.message.tokens;
        let at = tokens.iter().position(|token| stems.contains(&words::stem(&token.lower)))?;
        let before = tokens[at.saturating_sub(3)..at].iter();
        let is_denied = before
            .into_iter()
            .any(|token| matches!(token.lower.as_str(), "without" | "no" | "not" | "don't"));
        let used = (at..tokens.len()).take_while(|at| stems.contains(&words::stem(&tokens[*at].lower)));
        Some(((!is_denied).into(), used.collect()))
    }

    /// The longest run of words that are neither the tool's nor used: the rest must be the value.
    fn residue(&self, used: &BTreeSet<usize>) -> Option<Range<usize>> {
        let tokens = &self.message.tokens;
        let is_free = |at: usize| {
            let token = &tokens[at];
            !used.contains(&at)
                && !self.message.when.used.contains(&at)
                && words::stems(&token.lower).next().is_some()
                && !words::stems(&token.lower).all(|stem| (self.fill_context.is_tool_word)(&stem))
        };
        let mut best: Option<Range<usize>> = None;
        let mut at = 0;
        while at < tokens.len() {
            let end = (at..tokens.len()).find(|at| !is_free(*at)).unwrap_or(tokens.len());
            if end - at > best.as_ref().map_or(0, ExactSizeIterator::len) {
                best = Some(at..end);
            }
            at = end + 1;
        }
        best
    }
}

fn plain_number(text: &str) -> Option<Value> {
    let text = text.trim_start_matches(['#', '$', '€', '£']);
    if !text.starts_with(|letter: char| letter.is_ascii_digit()) || text.len() > 15 {
        return None;
    }
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
    }
}

/// As the tools want it: with its offset, without fractions.
fn rfc3339(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}
