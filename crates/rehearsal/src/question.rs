//! What a question asks for, and about what.

use std::collections::BTreeSet;

use crate::words::{self, Token};

/// The kind of value that an answer must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Date,
    Place,
    Person,
    /// A number of these, by their stem.
    Count(String),
    /// A number beside one of these words, by their stems.
    Measure(&'static [&'static str]),
    /// Yes or no: only a sentence that says all of it is evidence.
    Evidence,
    Reason,
    Manner,
    /// What something is: a record of that name, or a sentence that begins with it.
    Definition,
    Anything,
    /// A comparison, a judgement or advice. No sentence is the answer to that.
    Judgement,
}

/// A word that carries meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) stem: String,
    pub(crate) is_name: bool,
    /// Whether it stands after a preposition: “the museum in Oslo”.
    pub(crate) is_qualifier: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) kind: Kind,
    /// Whether it may ask what something is, whatever else its kind could be: “Who was Colin Archer?”.
    pub(crate) may_define: bool,
    /// Whether the user asked for whatever there is: “tell me about the hull”.
    pub(crate) is_open: bool,
    pub(crate) content: Vec<Word>,
    /// Whether it is about what was talked of before.
    pub(crate) has_pronoun: bool,
}

const MAX_TOKENS: usize = 60;

/// Words before the question itself.
#[rustfmt::skip]
const LEAD_INS: &[&[&str]] = &[
    &["can", "you", "tell", "me"], &["could", "you", "tell", "me"], &["would", "you", "tell", "me"],
    &["can", "you", "say"], &["do", "you", "know"], &["i", "want", "to", "know"], &["i'd", "like", "to", "know"],
    &["i", "would", "like", "to", "know"], &["i", "wonder"], &["tell", "me"], &["please"], &["and"], &["but"], &["so"],
    &["well"], &["ok"], &["okay"], &["also"], &["then"], &["now"], &["hi"], &["hello"], &["hey"], &["let's", "talk"],
    &["let", "us", "talk"], &["can", "we", "talk"], &["i", "want", "to", "talk"], &["something"],
];
const AUXILIARIES: &[&str] = &[
    "did", "was", "were", "is", "are", "does", "do", "has", "have", "had", "can", "could", "will", "would",
    "should", "isn't", "wasn't", "didn't", "aren't",
];
const TO_BE: &[&str] = &["is", "are", "was", "were"];
const PRONOUNS: &[&str] = &["he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their"];
const PREPOSITIONS: &[&str] =
    &["in", "at", "of", "on", "from", "to", "for", "with", "near", "under", "during", "aboard"];
/// Verbs and adverbs that add nothing to what must be found.
#[rustfmt::skip]
const LIGHT_WORDS: &[&str] = &[
    "actually", "do", "done", "doing", "exactly", "get", "got", "happen", "happened", "happens", "really", "explain",
    "describe", "define", "mentioned", "true", "there", "around", "say", "says", "quite", "stuff", "thing", "things",
    "somewhere", "short", "briefly", "precisely", "search", "find", "look", "name", "info", "information", "question",
];
#[rustfmt::skip]
const JUDGEMENTS: &[&str] = &[
    "compare", "better", "best", "worse", "worst", "versus", "vs", "difference", "differ", "prefer", "than", "should",
    "recommend", "or", "faster", "bigger", "longer", "older", "larger", "smaller", "stronger", "nicer", "opinion",
    "favourite", "favorite", "similar", "imagine", "if",
];
/// What follows “how”, and the words that say it in a sentence.
#[rustfmt::skip]
const MEASURES: &[(&str, &[&str])] = &[
    ("long", &["long", "length", "last"]), ("wide", &["wide", "broad", "breadth"]), ("broad", &["broad", "wide"]),
    ("thick", &["thick"]), ("deep", &["deep", "depth"]), ("tall", &["tall", "high", "height"]),
    ("high", &["high", "tall", "height"]), ("heavy", &["heavy", "weigh", "weight"]), ("far", &["far", "distance"]),
    ("fast", &["fast", "speed", "knot"]), ("cold", &["cold", "temperature"]), ("old", &["old"]), ("big", &["big"]),
    ("large", &["large"]), ("strong", &["strong", "horsepower"]), ("much", &["cost", "price", "weigh"]),
];

impl Question {
    /// `previous` is the question before, for one that only makes sense after it.
    pub(crate) fn parse(text: &str, previous: Option<&Question>) -> Self {
        let tokens = words::tokens(text, MAX_TOKENS);
        let start = after_lead_ins(&tokens);
        let is_continued = tokens[..start].iter().any(|it| matches!(it.lower.as_str(), "and" | "but"));
        let rest = &tokens[start..];
        let lower: Vec<&str> = rest.iter().map(|token| token.lower.as_str()).collect();
        let follows_about = match lower.as_slice() {
            ["what" | "how", "about", ..] => 2,
            ["about", ..] => 1,
            _ => 0,
        };
        let (kind, may_define, used) = kind(&lower);
        let mut question = Self {
            content: content(rest, start, &used),
            kind,
            may_define,
            is_open: lower.first().is_some_and(|it| matches!(*it, "about" | "explain" | "describe"))
                || tokens.iter().any(|it| it.lower == "discuss"),
            has_pronoun: false,
        };
        let has_name = question.content.iter().any(|word| word.is_name);
        // A pronoun after a name means that name.
        let pronoun = lower.iter().position(|word| PRONOUNS.contains(word));
        let name = rest.iter().skip(1).position(is_capital).filter(|_| has_name).map(|at| at + 1);
        question.has_pronoun = pronoun.is_some_and(|pronoun| name.is_none_or(|name| pronoun < name))
            || (question.content.is_empty() && !lower.is_empty());
        match previous {
            // “And when?”
            Some(previous) if question.content.is_empty() => question.content.clone_from(&previous.content),
            // “And Otto Sverdrup?”
            Some(previous)
                if (is_continued || follows_about == 2)
                    && question.kind == Kind::Definition
                    && has_name
                    && question.content.iter().all(|word| word.is_name) =>
            {
                let kept = previous.content.iter().filter(|word| !word.is_name).cloned();
                question.content.extend(kept);
                question.kind.clone_from(&previous.kind);
                question.may_define = previous.may_define;
            }
            _ => {}
        }
        question
    }

    pub(crate) fn stems(&self) -> BTreeSet<&str> {
        self.content.iter().map(|word| word.stem.as_str()).collect()
    }
}

/// The question itself, as it is searched for.
pub(crate) fn without_lead_in(text: &str) -> &str {
    let tokens = words::tokens(text, MAX_TOKENS);
    let start = after_lead_ins(&tokens);
    let start = start + usize::from(start > 0 && tokens.get(start).is_some_and(|it| it.lower == "about"));
    tokens.get(start).map_or(text, |first| &text[first.start..])
}

fn after_lead_ins(tokens: &[Token<'_>]) -> usize {
    let mut at = 0;
    'next: while at < tokens.len() {
        for lead in LEAD_INS {
            let fits = tokens.len() > at + lead.len()
                && lead.iter().zip(&tokens[at..]).all(|(word, token)| *word == token.lower);
            if fits {
                at += lead.len();
                continue 'next;
            }
        }
        break;
    }
    at
}

/// The kind, whether it may be a definition, and the words that only say so.
fn kind<'w>(lower: &[&'w str]) -> (Kind, bool, Vec<&'w str>) {
    let word = |at: usize| lower.get(at).copied().unwrap_or_default();
    let is_superlative = |word: &&str| {
        word.len() > 6
            && word.ends_with("est")
            && !["forest", "interest", "request", "harvest", "deepest"].contains(word)
    };
    if lower.iter().any(|word| JUDGEMENTS.contains(word)) || lower.iter().any(is_superlative) {
        return (Kind::Judgement, false, vec![]);
    }
    if matches!(lower, ["is", "it", "true", ..]) || AUXILIARIES.contains(&word(0)) {
        return (Kind::Evidence, false, vec![]);
    }
    let asks = |word: &str| {
        matches!(
            word.trim_end_matches("'s"),
            "who" | "whom" | "whose" | "when" | "where" | "why" | "how" | "what" | "which"
        )
    };
    let Some(at) = lower.iter().position(|word| asks(word)) else {
        return without_question_word(lower);
    };
    let (next, is_be) = (word(at + 1), lower[at].ends_with("'s") || TO_BE.contains(&word(at + 1)));
    match lower[at].trim_end_matches("'s") {
        "who" | "whom" | "whose" => (Kind::Person, is_be, vec!["man", "person", "woman"]),
        // What is the case now or will be is in no history.
        "when" if matches!(next, "is" | "are" | "does" | "do" | "will" | "can") => {
            (Kind::Judgement, false, vec![])
        }
        "when" => (Kind::Date, false, vec![]),
        "where" => (Kind::Place, false, vec![]),
        "why" => (Kind::Reason, false, vec![]),
        "how" => of_how(lower, at),
        _ => match next {
            "year" | "date" | "day" | "month" => (Kind::Date, false, vec![next]),
            "town" | "city" | "place" | "country" | "port" | "harbour" => (Kind::Place, false, vec![next]),
            "man" | "person" | "woman" | "explorer" | "people" | "men" => (Kind::Person, false, vec![next]),
            _ if word(0) == "what" && matches!(next, "about") => (Kind::Definition, true, vec![]),
            _ => (Kind::Anything, is_be, vec![]),
        },
    }
}

fn of_how<'w>(lower: &[&'w str], at: usize) -> (Kind, bool, Vec<&'w str>) {
    let next = lower.get(at + 1).copied().unwrap_or_default();
    if next == "many" {
        let counted = lower[at + 2..].iter().find(|word| !words::is_stop_word(word));
        return (Kind::Count(counted.map(|word| words::stem(word)).unwrap_or_default()), false, vec![]);
    }
    if matches!(next, "about") {
        return (Kind::Definition, true, vec![]);
    }
    if next == "come" {
        return (Kind::Reason, false, vec![next]);
    }
    match MEASURES.iter().find(|(word, _)| *word == next) {
        Some((_, said)) => (Kind::Measure(said), false, vec![next]),
        None => (Kind::Manner, false, vec![]),
    }
}

fn without_question_word<'w>(lower: &[&'w str]) -> (Kind, bool, Vec<&'w str>) {
    let has = |known: &[&str]| lower.iter().find(|word| known.contains(word)).copied();
    if let Some(word) = has(&["birthplace"]) {
        return (Kind::Place, false, vec![word]);
    }
    if let Some(word) = has(&["birthday", "birthdate"]) {
        return (Kind::Date, false, vec![word]);
    }
    (Kind::Definition, true, vec![])
}

/// The words that must be found. A name is what has a capital letter and does not just begin the sentence.
fn content(rest: &[Token<'_>], start: usize, used: &[&str]) -> Vec<Word> {
    let mut content: Vec<Word> = Vec::new();
    let mut is_qualifier = false;
    for (at, token) in rest.iter().enumerate() {
        let lower = token.lower.trim_end_matches("'s");
        if PREPOSITIONS.contains(&lower) {
            is_qualifier = true;
            continue;
        }
        // A word that only says what kind of answer is wanted may stand for one that must be found.
        let stand_in = match lower {
            _ if !used.contains(&lower) => None,
            "birthplace" | "birthday" | "birthdate" => Some("born"),
            _ => continue,
        };
        let lower = stand_in.unwrap_or(lower);
        let is_idle = words::is_stop_word(lower) || AUXILIARIES.contains(&lower) || PRONOUNS.contains(&lower);
        let is_light = LIGHT_WORDS.contains(&lower) && !(lower == "name" && at > 0);
        if is_idle || is_light {
            continue;
        }
        let begins = at == 0 && start == 0 && rest.get(1).is_none_or(|next| !is_capital(next));
        let is_name = is_capital(token) && !begins;
        for stem in words::stems(lower).map(words::canonical) {
            content.push(Word { stem, is_name, is_qualifier });
        }
        // A preposition governs one word, or a name of several.
        is_qualifier &= is_name && token.after.is_none();
    }
    content
}

fn is_capital(token: &Token<'_>) -> bool {
    token.text.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Kind, String) {
        let question = Question::parse(text, None);
        let stems: Vec<String> = question.content.iter().map(|word| word.stem.clone()).collect();
        (question.kind, stems.join(" "))
    }

    #[test]
    fn the_kind_and_the_words_of_a_question_are_told() {
        for (text, kind, content) in [
            ("When was the Fram launched?", Kind::Date, "fram launch"),
            ("In which town was the ship built?", Kind::Place, "ship build"),
            ("Can you tell me who built it?", Kind::Person, "build"),
            ("How many masts has the Fram?", Kind::Count("mast".into()), "mast fram"),
            ("Did Amundsen die on the Fram?", Kind::Evidence, "amundsen die fram"),
            ("Birthplace of Roald Amundsen?", Kind::Place, "born roald amundsen"),
            ("Which was faster, the Fram or the Maud?", Kind::Judgement, "faster fram maud"),
            ("dead water", Kind::Definition, "dead water"),
        ] {
            assert_eq!(parsed(text), (kind, content.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_question_that_does_not_stand_alone_takes_from_the_one_before() {
        let before = Question::parse("When was Fridtjof Nansen born?", None);
        let next = Question::parse("And Otto Sverdrup?", Some(&before));
        assert_eq!((next.kind, next.content.len(), next.has_pronoun), (Kind::Date, 3, false));
        let next = Question::parse("and where?", Some(&before));
        assert_eq!((&next.kind, next.has_pronoun), (&Kind::Place, true));
        assert_eq!(next.content, before.content);
    }
}
