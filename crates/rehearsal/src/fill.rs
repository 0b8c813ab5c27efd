//! Arguments of a tool, from the words of a message.

mod text;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Zoned};
use serde_json::{Map, Value};

use crate::now::Now;
use crate::parameter::{Kind, item_kind, name_words, single_type};
use crate::parsed_message::ParsedMessage;
use crate::toolbox::Tool;
use crate::words;

/// Of an appointment. The user sees it before anything is booked.
const DEFAULT_DURATION: SignedDuration = SignedDuration::from_mins(30);
/// With its offset, without fractions.
pub(crate) const RFC_3339: &str = "%Y-%m-%dT%H:%M:%S%:z";

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
    /// Whether a word is the tool's own, and so no argument.
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
    // A tool that requires nothing by its schema, and has no defaults, is of no use without any argument.
    let has_default = tool.properties().any(|(_, schema)| schema.get("default").is_some());
    if filled.values.is_empty() && filled.missing.is_empty() && !has_default {
        filled.missing.extend(tool.properties().next().map(|(name, _)| name));
    }
    filled
}

/// Whether a required parameter takes what no sentence can express.
pub(crate) fn has_inexpressible_parameter(tool: &Tool<'_>) -> bool {
    let mut required = tool.properties().filter(|(name, _)| tool.requires(name));
    required.any(|(name, schema)| item_kind(name, schema) == Kind::Inexpressible)
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
            return self.list(name, schema.get("items")?);
        }
        match Kind::of(name, schema) {
            kind @ (Kind::Start | Kind::End | Kind::Moment) => self.moment(kind),
            kind @ (Kind::FirstDay | Kind::LastDay | Kind::Day) => self.day(kind),
            Kind::Choice => {
                self.choices(schema).into_iter().next().or_else(|| self.implied_style(name, schema))
            }
            Kind::Length(unit) => self.length(schema, unit),
            Kind::Number => self.number(name, is_needed, used),
            Kind::Flag => self.flag(name),
            Kind::Inexpressible => None,
            kind => self.text(name, kind, schema, is_needed, used),
        }
    }

    /// Everything in the message that fits the items.
    fn list(&self, name: &str, items: &Value) -> Option<Argument> {
        let mut found = match Kind::of(name, items) {
            Kind::Choice => self.choices(items),
            Kind::Address => self.addresses(items, true),
            // What is not plainly such a thing is left out.
            _ => return None,
        };
        let mut seen = BTreeSet::new();
        found.retain(|(value, _)| seen.insert(value.to_string()));
        let used = found.iter().flat_map(|(_, used)| used.iter().copied()).collect();
        let values: Vec<Value> = found.into_iter().map(|(value, _)| value).collect();
        (!values.is_empty()).then(|| (values.into(), used))
    }

    /// The tokens that look like addresses; for invitations only those that could be.
    fn addresses(&self, schema: &Value, only_plausible: bool) -> Vec<Argument> {
        let max = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let is_plausible = |text: &str| {
            let parts = text.split_once('@');
            parts.is_some_and(|(local, domain)| {
                !local.is_empty() && domain.contains('.') && !domain.starts_with('.') && !domain.contains('@')
            })
        };
        let all = self.message.addresses.iter().map(|at| (*at, self.message.tokens[*at].text));
        let fits = |text: &str| text.chars().count() as u64 <= max && (!only_plausible || is_plausible(text));
        all.filter(|(_, text)| fits(text))
            .map(|(at, text)| (Value::from(text), BTreeSet::from([at])))
            .collect()
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
            Kind::Moment if !self.tool.is_action() && when.start(now).is_none() => {
                now.at(when.date?, jiff::civil::Time::MIN)?
            }
            _ => when.start(now)?,
        };
        Some((moment.strftime(RFC_3339).to_string().into(), when.used.clone()))
    }

    fn day(&self, kind: Kind) -> Option<Argument> {
        let when = &self.message.when;
        let date = when.date.or_else(|| when.moment.as_ref().map(Zoned::date))?;
        let date = if kind == Kind::LastDay { when.until.unwrap_or(date) } else { date };
        Some((date.to_string().into(), when.used.clone()))
    }

    /// The values of a choice that are said.
    fn choices(&self, schema: &Value) -> Vec<Argument> {
        let plain = |word: &str| word.to_lowercase().replace(['_', '-'], "");
        let known = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let tokens = self.message.tokens.iter().enumerate();
        // A word that the tool uses for itself chooses nothing: “time” in “what time”.
        let free = tokens
            .filter(|(_, token)| self.tool.is_action() || !(self.fill_context.is_tool_word)(&token.lower));
        let found = free.filter_map(|(at, token)| {
            let value =
                known.iter().find(|it| it.as_str().is_some_and(|it| plain(it) == plain(&token.lower)))?;
            Some((value.clone(), BTreeSet::from([at])))
        });
        found.collect()
    }

    /// How a moment is to be written follows from what was asked about it.
    fn implied_style(&self, name: &str, schema: &Value) -> Option<Argument> {
        let when = &self.message.when;
        let place =
            |words: &[&str]| self.message.tokens.iter().position(|it| words.contains(&it.lower.as_str()));
        let (value, used) = if let Some(at) = place(&["until", "ago"]) {
            ("relative", BTreeSet::from([at]))
        } else if when.date.is_some() && when.time.is_none() && when.moment.is_none() {
            ("date", BTreeSet::new())
        } else {
            return None;
        };
        let is_known = name == "style" && schema.get("enum")?.as_array()?.iter().any(|it| it == value);
        is_known.then(|| (value.into(), used))
    }

    fn length(&self, schema: &Value, unit: i64) -> Option<Argument> {
        let count = self.message.when.length?.as_secs() / unit;
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
        let fits = bound("minimum").is_none_or(|min| count >= min)
            && bound("maximum").is_none_or(|max| count <= max);
        fits.then(|| (count.into(), self.message.when.used.clone()))
    }

    /// A number beside a word of the parameter's name; any number, if one is needed.
    fn number(&self, name: &str, is_needed: bool, used: &BTreeSet<usize>) -> Option<Argument> {
        let stems: BTreeSet<String> = name_words(name).iter().map(|word| words::stem(word)).collect();
        let tokens = &self.message.tokens;
        let names_it =
            |at: &usize| tokens.get(*at).is_some_and(|token| stems.contains(&words::stem(&token.lower)));
        let near = |at: usize| [at.wrapping_sub(1), at + 1].into_iter().find(names_it);
        let is_free = |at: &usize| !used.contains(at) && !self.message.when.used.contains(at);
        let numbers: Vec<(usize, Value)> = (0..tokens.len())
            .filter(is_free)
            .filter_map(|at| Some((at, plain_number(tokens[at].text)?)))
            .collect();
        let named = numbers.iter().find(|(at, _)| near(*at).is_some());
        let (at, value) = named.or_else(|| numbers.first().filter(|_| is_needed))?;
        Some((value.clone(), near(*at).into_iter().chain([*at]).collect()))
    }

    /// “with details”, “without a zoom link”.
    fn flag(&self, name: &str) -> Option<Argument> {
        let generic = ["include", "with", "is", "has", "enable", "use", "allow", "should", "notify"];
        let wanted = name_words(name).into_iter().filter(|word| !generic.contains(&word.as_str()));
        let stems: BTreeSet<String> = wanted.map(|word| words::stem(&word)).collect();
        let tokens = &self.message.tokens;
        let is_it = |at: &usize| stems.contains(&words::stem(&tokens[*at].lower));
        let at = (0..tokens.len()).find(is_it)?;
        let mut before = tokens[at.saturating_sub(3)..at].iter();
        let is_denied =
            before.any(|token| matches!(token.lower.as_str(), "without" | "no" | "not" | "don't"));
        Some(((!is_denied).into(), (at..tokens.len()).take_while(is_it).collect()))
    }
}

fn plain_number(text: &str) -> Option<Value> {
    let text = text.trim_start_matches(['#', '$', '€', '£']);
    if !text.starts_with(|letter: char| letter.is_ascii_digit()) || text.len() > 15 {
        return None;
    }
    let whole = text.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from))
}
