//! The parts of a message: tokens, addresses, names, numbers, quotations, times.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::now::Now;
use crate::when::{self, When};
use crate::words::{self, Token};

const MAX_TOKENS: usize = 600;

pub(crate) struct ParsedMessage<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) when: When,
    /// Tokens with an `@` in them, right or wrong.
    pub(crate) addresses: Vec<usize>,
    pub(crate) links: Vec<usize>,
    /// Runs of words with capital letters that do not just begin a sentence.
    pub(crate) names: Vec<Range<usize>>,
    /// What stands in quotation marks.
    pub(crate) quoted: Vec<&'a str>,
    /// What follows a colon or a line break: a text that was pasted.
    pub(crate) payload: Option<&'a str>,
    /// What follows “about”.
    pub(crate) topic: Option<Range<usize>>,
}

impl<'a> ParsedMessage<'a> {
    pub(crate) fn new(text: &'a str, now: &Now) -> Self {
        let tokens = words::tokens(text, MAX_TOKENS);
        let when = when::read(&tokens, now);
        let places = |test: &dyn Fn(&Token<'_>) -> bool| -> Vec<usize> {
            tokens.iter().enumerate().filter(|(_, token)| test(token)).map(|(at, _)| at).collect()
        };
        let addresses = places(&|token| token.text.contains('@') && token.text.len() > 2);
        let links = places(&|token| is_link(&token.lower));
        let topic = topic(&tokens, &when);
        let names = names(&tokens, &when.used);
        Self {
            text,
            when,
            addresses,
            links,
            names,
            quoted: quoted(text),
            payload: payload(text),
            topic,
            tokens,
        }
    }

    /// Tokens as they were written, with the spaces between them.
    pub(crate) fn written(&self, place: Range<usize>) -> &'a str {
        match (self.tokens.get(place.start), self.tokens.get(place.end.saturating_sub(1))) {
            (Some(first), Some(last)) if !place.is_empty() => &self.text[first.start..last.end()],
            _ => "",
        }
    }

    /// Where a part of the message stands, in tokens.
    pub(crate) fn place(&self, part: &str) -> Range<usize> {
        let start = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let end = start + part.len();
        let first = self.tokens.partition_point(|token| token.start < start);
        let last = self.tokens.partition_point(|token| token.start < end);
        first..last.max(first)
    }

    /// Whether it asks instead of telling someone to do something.
    pub(crate) fn is_question(&self) -> bool {
        let first = self.tokens.first().map_or("", |token| token.lower.as_str());
        QUESTION_WORDS.contains(&first)
    }
}

#[rustfmt::skip]
const QUESTION_WORDS: &[&str] = &[
    "who", "what", "when", "where", "why", "how", "which", "whose", "whom", "who's", "what's", "when's", "did", "does",
    "was", "were", "has", "had", "is", "are",
];

fn is_link(lower: &str) -> bool {
    lower.starts_with("https://") || lower.starts_with("http://") || lower.starts_with("www.")
}

/// What stands after a colon and a space, or after the first line. A colon inside a word is none.
fn payload(text: &str) -> Option<&str> {
    let after = |mark: &str| text.split_once(mark).map(|(_, after)| after.trim());
    let pasted = [after(": "), after(":\n"), after("\n")].into_iter().flatten().max_by_key(|part| part.len());
    pasted.filter(|part| !part.is_empty())
}

/// The phrases that stand in quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    let mut phrases = Vec::new();
    for (open, close) in [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»')] {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((phrase, next)) = after.split_once(close) else { break };
            phrases.push(phrase.trim());
            rest = next;
        }
    }
    phrases.retain(|phrase| !phrase.is_empty());
    phrases
}

/// “about the budget”, until something else begins.
fn topic(tokens: &[Token<'_>], when: &When) -> Option<Range<usize>> {
    let about =
        tokens.iter().position(|token| matches!(token.lower.as_str(), "about" | "regarding" | "re"))?;
    let is_end = |at: usize| {
        let token = &tokens[at];
        when.used.contains(&at)
            || token.text.contains('@')
            || (matches!(
                token.lower.as_str(),
                "with" | "at" | "on" | "for" | "from" | "tomorrow" | "please" | "next" | "this" | "in"
            ) && (at + 1 >= tokens.len()
                || when.used.contains(&(at + 1))
                || tokens[at + 1].text.contains('@')))
    };
    let start = about + 1;
    let mut end = start;
    while end < tokens.len() && !is_end(end) {
        end += 1;
        if tokens[end - 1].ends_sentence() || tokens[end - 1].after == Some(',') {
            break;
        }
    }
    (end > start).then_some(start..end)
}

/// Words with a capital letter that are no names.
fn is_no_name(token: &Token<'_>) -> bool {
    words::is_stop_word(&token.lower)
        || !token.text.starts_with(char::is_uppercase)
        || token.text.contains(['@', '/', '_'])
        || matches!(token.lower.as_str(), "linkedin" | "ok" | "zoom" | "i'll" | "i've" | "e-mail" | "email")
}

/// Words that requests begin with.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "add", "arrange", "ask", "book", "call", "cancel", "check", "create", "describe", "explain", "extract",
    "find", "format", "get", "give", "invite", "list", "look", "make", "meet", "open", "order", "plan",
    "read", "refund", "remind", "schedule", "search", "send", "set", "show", "start", "stop", "talk",
    "tell", "try", "validate", "verify", "write",
];

fn names(tokens: &[Token<'_>], used: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at;
        while end < tokens.len() && !used.contains(&end) && !is_no_name(&tokens[end]) {
            end += 1;
            if tokens[end - 1].after.is_some() {
                break;
            }
        }
        // The first word of a sentence has its capital letter anyway.
        let begins = at == 0 || tokens[at - 1].ends_sentence();
        let start =
            if begins && end > at && VERBS.contains(&tokens[at].lower.as_str()) { at + 1 } else { at };
        if end > start {
            names.push(start..end);
        }
        at = if end > at { end } else { at + 1 };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(text: &str, test: impl FnOnce(&ParsedMessage<'_>) -> T) -> T {
        let now = Now::parse(
            "## Now\n\nToday is (2026-11-15). The user's time zone is Europe/Oslo and their locale is nb-NO.\n\nIt is 09:10 now.",
        );
        test(&ParsedMessage::new(text, &now))
    }

    fn names(text: &str) -> Vec<String> {
        with(text, |message| {
            message.names.iter().map(|name| message.written(name.clone()).to_owned()).collect()
        })
    }

    #[test]
    fn names_are_runs_of_capital_letters() {
        assert_eq!(names("Find Ingrid Berg on LinkedIn"), ["Ingrid Berg"]);
        assert_eq!(names("When is Anna free on Friday?"), ["Anna"]);
        assert_eq!(names("Ask Otto, Eva and Per Schei."), ["Otto", "Eva", "Per Schei"]);
        assert_eq!(names("Book a meeting"), Vec::<String>::new());
    }

    #[test]
    fn a_topic_ends_where_something_else_begins() {
        let topic = |text: &str| with(text, |it| it.topic.clone().map(|place| it.written(place).to_owned()));
        assert_eq!(topic("book a meeting about the budget tomorrow at 15:00").as_deref(), Some("the budget"));
        assert_eq!(topic("a call about ice with anna@example.com").as_deref(), Some("ice"));
        assert_eq!(
            topic("with anna@example.com about the yearly budget of the ship").as_deref(),
            Some("the yearly budget of the ship")
        );
        assert_eq!(topic("nothing"), None);
    }

    #[test]
    fn pasted_text_follows_a_colon_or_a_line() {
        let payload = |text: &str| with(text, |it| it.payload.map(str::to_owned));
        assert_eq!(payload("contacts in this: Ana, ana@x.com").as_deref(), Some("Ana, ana@x.com"));
        assert_eq!(payload("extract\nAna\nBo").as_deref(), Some("Ana\nBo"));
        assert_eq!(payload("at 15:00"), None);
    }
}
