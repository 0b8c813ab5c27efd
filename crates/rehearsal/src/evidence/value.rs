//! Values of the kind that was asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::{Source, stems, written};
use crate::question::{Kind, Question};
use crate::words::{self, Token};

#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];
#[rustfmt::skip]
const NUMBERS: [&str; 29] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty",
    "ninety", "hundred", "thousand",
];
/// By their stems.
#[rustfmt::skip]
const UNITS: [&str; 22] = [
    "metr", "meter", "centimetr", "centimeter", "millimetr", "kilometr", "kilometer", "mil", "foot", "inch", "ton", "tonn", "kilo",
    "pound", "knot", "hour", "day", "week", "month", "year", "degre", "horsepower",
];
const BEFORE_PLACES: [&str; 11] =
    ["in", "at", "near", "off", "from", "to", "on", "into", "outside", "between", "beside"];

/// The words with a capital letter in the middle of a sentence, in lower case.
pub(super) fn names(sources: &[Source<'_>]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in sources {
        let titles = words::tokens(source.title, 12).into_iter().filter(is_capital).map(|it| it.lower);
        names.extend(titles.filter(|it| source.is_person && !words::is_stop_word(it)));
        for sentence in &source.sentences {
            let tokens = words::tokens(&sentence.text, super::MAX_SENTENCE_TOKENS);
            let inner = tokens.into_iter().skip(1).filter(|it| is_capital(it) && !MONTHS.contains(&it.text));
            names.extend(inner.map(|it| it.lower));
        }
    }
    names
}

/// Whether a sentence holds a value of the kind. `places` is where it says the words of the question.
pub(super) fn holds(
    question: &Question,
    tokens: &[Token<'_>],
    places: &[usize],
    names: &BTreeSet<String>,
    is_of_person: bool,
    says_more: bool,
) -> bool {
    let asked = question.stems();
    // What is only in the title does not make a sentence about it.
    if places.is_empty() && !matches!(question.kind, Kind::Measure(_)) {
        return false;
    }
    let last = places.iter().copied().max();
    let is_new = |token: &Token<'_>| !stems(&token.lower).iter().any(|stem| asked.contains(stem.as_str()));
    match &question.kind {
        Kind::Date => tokens[clause(tokens, last)].iter().any(|token| is_date(token) && is_new(token)),
        Kind::Place => has_place(&tokens[clause(tokens, last)], &is_new),
        Kind::Person => {
            is_of_person && (!question.may_define || is_called(tokens, places))
                || has_agent(tokens, places, names, &is_new)
        }
        Kind::Count(counted) => counts(tokens, counted),
        Kind::Measure(said) => measures(tokens, said),
        Kind::Evidence => true,
        Kind::Reason => has_reason(tokens),
        Kind::Manner => {
            let is_means = |token: &Token<'_>| {
                matches!(token.lower.as_str(), "by" | "with" | "through" | "until" | "so")
            };
            places.len() > 1 && tokens.iter().any(is_means)
        }
        Kind::Anything => tokens.len() > question.content.len() + 1 && says_more,
        Kind::Definition | Kind::Judgement => false,
    }
}

/// The part between commas that a word stands in: a date in another part belongs to something else.
pub(super) fn clause(tokens: &[Token<'_>], place: Option<usize>) -> Range<usize> {
    let Some(place) = place else { return 0..tokens.len() };
    let ends = |token: &Token<'_>| matches!(token.after, Some(',' | ';' | ':'));
    let start = tokens[..place].iter().rposition(ends).map_or(0, |at| at + 1);
    let end = tokens[place..].iter().position(ends).map_or(tokens.len(), |at| place + at + 1);
    start..end
}

/// “He was captain”, “joined as doctor”: the first word of the question said of someone.
pub(super) fn is_called(tokens: &[Token<'_>], places: &[usize]) -> bool {
    let Some(&place) = places.first() else { return false };
    let mut before = tokens[place.saturating_sub(4)..place].iter();
    before.any(|it| matches!(it.lower.as_str(), "was" | "is" | "were" | "became" | "as"))
}

fn is_capital(token: &Token<'_>) -> bool {
    token.text.starts_with(char::is_uppercase)
}

fn is_date(token: &Token<'_>) -> bool {
    let is_year = token.text.len() == 4 && token.text.bytes().all(|byte| byte.is_ascii_digit());
    is_year || MONTHS.contains(&token.text)
}

fn is_number(token: &Token<'_>) -> bool {
    token.text.starts_with(|letter: char| letter.is_ascii_digit())
        || token.lower.split('-').any(|part| NUMBERS.contains(&part))
}

/// “at Larvik”, “near the Bay of Whales”.
fn has_place(tokens: &[Token<'_>], is_new: &dyn Fn(&Token<'_>) -> bool) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let mut rest = tokens[at + 1..].iter();
        let next = rest.find(|it| !matches!(it.lower.as_str(), "the" | "a" | "an" | "small" | "old"));
        BEFORE_PLACES.contains(&token.lower.as_str())
            && token.after.is_none()
            && next.is_some_and(|it| {
                is_new(it) && ((is_capital(it) && !MONTHS.contains(&it.text)) || is_direction(it))
            })
    })
}

fn is_direction(token: &Token<'_>) -> bool {
    ["north", "south", "east", "west"].iter().any(|it| token.lower.starts_with(it))
}

/// “Eva Nansen broke”, “built by Colin Archer”, “the cook, Adolf Juell”: a name beside what was done.
fn has_agent(
    tokens: &[Token<'_>],
    places: &[usize],
    names: &BTreeSet<String>,
    is_new: &dyn Fn(&Token<'_>) -> bool,
) -> bool {
    // “American” tells no one.
    let is_nationality =
        |it: &Token<'_>| ["ian", "ican", "ish", "ese"].iter().any(|ending| it.lower.ends_with(ending));
    let is_name = |at: usize| {
        tokens.get(at).is_some_and(|it| {
            is_capital(it) && names.contains(&it.lower) && is_new(it) && !is_nationality(it)
        })
    };
    places.iter().any(|place| {
        let before = (place.saturating_sub(3)..*place).rev();
        let mut before = before.take_while(|at| !BEFORE_PLACES.contains(&tokens[*at].lower.as_str()));
        let follows_by =
            (place + 1..(place + 4).min(tokens.len())).any(|at| tokens[at].lower == "by" && is_name(at + 1));
        let is_apposed = tokens[*place].after == Some(',') && is_name(place + 1);
        before.any(is_name) || follows_by || is_apposed
    })
}

/// A number just before what is counted.
fn counts(tokens: &[Token<'_>], counted: &str) -> bool {
    let is_counted = |token: &Token<'_>| stems(&token.lower).iter().any(|stem| stem == counted);
    tokens.iter().enumerate().any(|(at, token)| {
        is_counted(token) && tokens[at.saturating_sub(3)..at].iter().any(|it| is_number(it) && !is_date(it))
    })
}

/// A number near one of the words for this measure.
fn measures(tokens: &[Token<'_>], said: &[&str]) -> bool {
    let is_said = |token: &Token<'_>| said.iter().any(|word| token.lower.starts_with(word));
    tokens.iter().enumerate().any(|(at, token)| {
        let near = &tokens[at.saturating_sub(4)..(at + 5).min(tokens.len())];
        is_said(token)
            && near
                .windows(2)
                .any(|pair| is_number(&pair[0]) && UNITS.contains(&words::stem(&pair[1].lower).as_str()))
    })
}

fn has_reason(tokens: &[Token<'_>]) -> bool {
    let is_reason = |it: &Token<'_>| matches!(it.lower.as_str(), "because" | "therefore" | "reason");
    tokens.iter().any(is_reason)
        || tokens.windows(2).any(|pair| pair[0].lower == "so" && pair[1].lower == "that")
}

/// The value of a record's field, in words, if it is of the kind.
pub(super) fn of_field(kind: &Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Date, Value::Number(year)) => {
            year.as_u64().filter(|it| (1000..3000).contains(it)).map(|it| it.to_string())
        }
        (Kind::Date, Value::String(date)) => date.parse().ok().map(written),
        // A record's id is its name with dashes.
        (Kind::Person, Value::String(id)) => {
            let slug = id.strip_prefix("person:")?;
            Some(slug.split('-').map(capitalised).collect::<Vec<_>>().join(" "))
        }
        (Kind::Place | Kind::Anything, Value::String(text)) if !text.contains(':') => Some(text.clone()),
        _ => None,
    }
}

pub(crate) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
