//! Judges whether a sentence answers a question.
//!
//! A sentence counts only if its record is about what was asked, if it says everything that the question says, and if it
//! holds a value of the kind that was asked for. What does not pass is not quoted as an answer, however near it is.

mod value;

pub(crate) use value::capitalised;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::now;
use crate::parameter::name_words;
use crate::question::{Kind, Question, Word};
use crate::sentences::{self, Sentence};
use crate::words::{self, Token};

/// What was found: a record, or a passage of one.
pub(crate) struct Source<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) is_person: bool,
    pub(crate) score: f64,
    /// Whether it is the record that was cited last.
    pub(crate) is_cited: bool,
    pub(crate) sentences: Vec<Sentence>,
    /// Whether this is the record itself, and not only a passage of it.
    is_whole: bool,
    metadata: Option<&'a Map<String, Value>>,
    tags: BTreeSet<String>,
}

/// The sentences that answer, as they are quoted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    /// Which source, by its place.
    pub(crate) source: usize,
    pub(crate) text: String,
    strength: f64,
}

const MAX_SENTENCE_TOKENS: usize = 120;

impl<'a> Source<'a> {
    /// From a record, or from a search result with its passage.
    pub(crate) fn read(record: &'a Value, cited: Option<&str>) -> Option<Self> {
        let id = record.get("id")?.as_str()?;
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        let tags = record.get("tags").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            id,
            title: text("title").unwrap_or("untitled"),
            is_person: text("type") == Some("person"),
            score: record.get("score").and_then(Value::as_f64).unwrap_or_default(),
            is_cited: cited == Some(id),
            sentences: sentences::sentences(text("full_text").or(text("snippet")).unwrap_or_default()),
            is_whole: text("full_text").is_some(),
            metadata: record.get("metadata").and_then(Value::as_object),
            tags: tags.filter_map(Value::as_str).flat_map(stems).collect(),
        })
    }
}

fn stems(text: &str) -> Vec<String> {
    words::subjects(text).into_iter().map(words::canonical).collect()
}

/// The best evidence among all sources. There are two pieces where a name belongs to two people, both of whom it fits.
pub(crate) fn find(question: &Question, sources: &[Source<'_>]) -> Vec<Finding> {
    if question.kind == Kind::Judgement || question.content.is_empty() {
        return Vec::new();
    }
    let question = &spelt(question, sources);
    let names = value::names(sources);
    // A pronoun means what was cited, and nothing else.
    let meant = sources.iter().enumerate().filter(|(_, source)| !question.has_pronoun || source.is_cited);
    let found = meant.filter_map(|(at, source)| {
        let judge = Judge::new(question, source, &names);
        let definition = judge.definition(at).filter(|_| question.may_define);
        definition.or_else(|| judge.sentence(at)).or_else(|| judge.fact(at))
    });
    let mut found: Vec<Finding> = found.collect();
    found.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let named = |at: usize| -> Vec<&str> {
        let title = stems(sources[at].title);
        question
            .content
            .iter()
            .map(|word| word.stem.as_str())
            .filter(|stem| title.iter().any(|it| it == stem))
            .collect()
    };
    let first = found.first().map(|it| it.source);
    let is_namesake = |at: usize| {
        first.is_some_and(|first| sources[at].is_person && !named(at).is_empty() && named(at) == named(first))
    };
    let mut kept = 0;
    found.retain(|it| {
        kept += 1;
        kept == 1 || (is_namesake(it.source) && first.is_some_and(|first| sources[first].is_person))
    });
    found.truncate(2);
    found
}

/// The question with names as the titles spell them, and usual verbs as they are written. Nothing else is corrected:
/// a wrong guess would be a wrong answer.
fn spelt(question: &Question, sources: &[Source<'_>]) -> Question {
    const VERBS: [&str; 8] = ["built", "born", "launched", "designed", "opened", "died", "named", "captain"];
    let titles: BTreeSet<String> = sources.iter().flat_map(|source| stems(source.title)).collect();
    let is_known = |stem: &str| {
        titles.contains(stem)
            || sources
                .iter()
                .any(|source| source.sentences.iter().any(|it| stems(&it.text).contains(&stem.to_owned())))
    };
    let mut question = question.clone();
    for word in &mut question.content {
        if is_known(&word.stem) {
            continue;
        }
        let title = titles.iter().find(|title| title.len() > 4 && words::is_misspelling(&word.stem, title));
        let verb =
            VERBS.iter().find(|verb| words::is_misspelling(&word.stem, verb)).map(|verb| words::stem(verb));
        if let Some(meant) = verb.or_else(|| title.cloned()) {
            word.stem = meant;
        }
    }
    question
}

struct Judge<'q, 's> {
    question: &'q Question,
    source: &'s Source<'s>,
    /// The words of the title that make the record one about what was asked.
    title: BTreeSet<String>,
    /// All words of the title, by which its sentences may call their subject.
    subject: BTreeSet<String>,
    lead: BTreeSet<String>,
    names: &'q BTreeSet<String>,
}

/// Where the words of a question were found.
struct Match {
    /// Places in the sentence, in the order of the question.
    places: Vec<usize>,
    /// How many words only the title has.
    by_title: usize,
    /// Whether the title has the first thing that the question names.
    is_about: bool,
    /// Whether the question says more than the title.
    says_more: bool,
    /// Whether the sentence before says whom it is about.
    needs_previous: bool,
}

impl<'q, 's> Judge<'q, 's> {
    fn new(question: &'q Question, source: &'s Source<'s>, names: &'q BTreeSet<String>) -> Self {
        let lead = source.sentences.first().map(|lead| stems(&lead.text)).unwrap_or_default();
        let subject: BTreeSet<String> =
            stems(source.title).into_iter().filter(|stem| !is_year(stem)).collect();
        // People are asked about by their surnames: Scott is not Sigurd Scott Hansen.
        let surname =
            words::tokens(source.title, 12).last().map(|token| words::stem(&token.lower)).unwrap_or_default();
        let is_meant = !source.is_person || question.content.iter().any(|word| word.stem == surname);
        let title = if is_meant { subject.clone() } else { BTreeSet::new() };
        Self { question, source, title, subject, lead: lead.into_iter().collect(), names }
    }

    fn finding(&self, at: usize, sentences: &[usize], strength: f64) -> Option<Finding> {
        let text: Vec<&str> =
            sentences.iter().filter_map(|nth| Some(self.source.sentences.get(*nth)?.text.as_str())).collect();
        let text = text.join(" ");
        (!text.is_empty()).then_some(Finding { source: at, text, strength: strength + self.source.score })
    }

    /// What something is: the beginning of the record of that name, or the sentence that begins with it.
    fn definition(&self, at: usize) -> Option<Finding> {
        let wanted = self.question.stems();
        let is_about = |stem: &&str| self.title.iter().any(|title| words::are_alike(title, stem));
        let covered = wanted.iter().all(is_about);
        let is_same = covered && self.title.len() == wanted.len();
        let is_mostly = covered && 2 * wanted.len() >= self.title.len();
        // A passage may be from anywhere; only the beginning of a record says what it is about.
        let is_beginning = self.source.is_whole
            || self.source.sentences.first().is_some_and(|it| {
                it.text.split(' ').take(4).any(|word| self.source.title.contains(word) && word.len() > 3)
            });
        if is_beginning
            && (is_same || (covered && self.source.is_person) || (is_mostly && self.question.is_open))
        {
            return self.finding(at, &[0, 1], if is_same { 12.0 } else { 10.0 });
        }
        let begins = |sentence: &Sentence| {
            let tokens = words::tokens(&sentence.text, 12);
            let skip =
                usize::from(tokens.first().is_some_and(|it| matches!(it.lower.as_str(), "the" | "a" | "an")));
            let said: BTreeSet<String> =
                tokens.iter().skip(skip).take(wanted.len()).flat_map(|it| stems(&it.lower)).collect();
            let end = tokens.get(skip + wanted.len() - 1);
            let next =
                |more: usize| tokens.get(skip + wanted.len() + more).map_or("", |it| it.lower.as_str());
            // “Was built by” says what happened to it, “is a ship” what it is.
            let is_defined = matches!(next(0), "is" | "was" | "are" | "were" | "means")
                && matches!(next(1), "a" | "an" | "the" | "one" | "not" | "when" | "what" | "how");
            said.iter().map(String::as_str).collect::<BTreeSet<_>>() == wanted
                && (is_defined || end.is_some_and(|it| it.after == Some(':')))
        };
        let place = self.source.sentences.iter().position(begins)?;
        self.finding(at, &[place], 9.0)
    }

    /// A field of the record whose name says what was asked: `died: 1928`.
    fn fact(&self, at: usize) -> Option<Finding> {
        let about = |word: &&Word| {
            self.title.contains(&word.stem) || (word.is_qualifier && self.lead.contains(&word.stem))
        };
        let rest: Vec<&Word> = self.question.content.iter().filter(|word| !about(word)).collect();
        let is_about =
            rest.len() < self.question.content.len() || (self.question.has_pronoun && self.source.is_cited);
        if rest.is_empty() || !is_about {
            return None;
        }
        let fields = self.source.metadata?.iter();
        let mut fitting = fields.filter(|(name, _)| {
            let said: BTreeSet<String> = name_words(name).iter().flat_map(|word| stems(word)).collect();
            rest.iter().all(|word| said.contains(&word.stem))
        });
        let (name, value) = fitting.next()?;
        let value = value::of_field(&self.question.kind, value)?;
        let text = format!("“{}” has “{}: {value}”.", self.source.title, name_words(name).join(" "));
        Some(Finding { source: at, text, strength: 4.0 + self.source.score })
    }

    /// The sentence that says it all and holds a value of the kind.
    fn sentence(&self, at: usize) -> Option<Finding> {
        let found = self.source.sentences.iter().enumerate().filter_map(|(nth, sentence)| {
            let tokens = words::tokens(&sentence.text, MAX_SENTENCE_TOKENS);
            let matched = self.words(nth, &tokens)?;
            // “What is dead water?” is about one thing, not about water and a dead something.
            let span = matched
                .places
                .iter()
                .max()
                .zip(matched.places.iter().min())
                .map_or(0, |(last, first)| last - first);
            let is_told = span <= matched.places.len() + 2 && value::is_called(&tokens, &matched.places);
            let is_one_thing = matched.is_about || is_told;
            if self.question.may_define && self.question.kind == Kind::Anything && !is_one_thing {
                return None;
            }
            if !self.is_subject(&tokens, &matched)
                || !value::holds(
                    self.question,
                    &tokens,
                    &matched.places,
                    self.names,
                    self.is_of_person(&tokens, &matched.places),
                    matched.says_more,
                )
            {
                return None;
            }
            let quoted = if matched.needs_previous { vec![nth - 1, nth] } else { vec![nth] };
            // What the sentence says itself counts more than what its title says; the earlier of two is the better one.
            let strength = 2.0 * matched.places.len() as f64
                + matched.by_title as f64
                + 1.5 * f64::from(u8::from(matched.is_about))
                - 0.01 * nth as f64
                - 0.5 * f64::from(u8::from(tokens.iter().any(|it| it.lower == "here")));
            self.finding(at, &quoted, strength)
        });
        found.max_by(|a, b| a.strength.total_cmp(&b.strength))
    }

    /// Finds every word of the question: in the sentence, in the title, or where a lesser word may stand.
    fn words(&self, nth: usize, tokens: &[Token<'_>]) -> Option<Match> {
        let sentence = &self.source.sentences[nth];
        let said: Vec<Vec<String>> = tokens.iter().map(|token| stems(&token.lower)).collect();
        // “The captain's training” is about no captain.
        let is_owner = |at: usize| tokens[at].lower.ends_with("'s");
        let previous = nth.checked_sub(1).filter(|_| !sentence.opens && leans(tokens));
        let previous = previous.map(|at| words::tokens(&self.source.sentences[at].text, 4));
        let mut matched = Match {
            places: Vec::new(),
            by_title: 0,
            is_about: false,
            says_more: false,
            needs_previous: false,
        };
        let is_free = |word: &Word| {
            !word.is_name && !self.title.iter().any(|title| words::are_alike(title, &word.stem))
        };
        let verb = self.question.content.iter().position(is_free).unwrap_or(usize::MAX);
        matched.says_more = verb != usize::MAX;
        let has_object = self.question.content.get(verb).is_some_and(|word| acts_on_it(word, tokens, &said));
        for (nth, word) in self.question.content.iter().enumerate() {
            let is_it = |stems: &Vec<String>| stems.iter().any(|stem| words::are_alike(stem, &word.stem));
            let begins_previous = || {
                previous
                    .as_ref()
                    .is_some_and(|tokens| tokens.iter().any(|it| stems(&it.lower).contains(&word.stem)))
            };
            // What is asked about may be in the title alone; what was done to what must be in the sentence.
            let may_be_title = match self.question.kind {
                Kind::Person => has_object || (word.is_qualifier && !word.is_name),
                Kind::Count(_) => true,
                _ => nth < verb || word.is_qualifier || has_object,
            };
            let place = (0..said.len()).find(|at| is_it(&said[*at]) && (word.is_name || !is_owner(*at)));
            if let Some(place) = place {
                matched.places.push(place);
            } else if may_be_title && self.title.iter().any(|title| words::are_alike(title, &word.stem)) {
                matched.by_title += 1;
            } else if word.is_name && begins_previous() {
                matched.needs_previous = true;
            } else if !(self.may_be_elsewhere(word)
                && (self.lead.contains(&word.stem) || self.source.tags.contains(&word.stem)))
            {
                return None;
            }
        }
        let is_cited = self.question.has_pronoun && self.source.is_cited;
        let says_all = matched.places.len() == self.question.content.len() && matched.places.len() > 1;
        matched.is_about = self.question.content.first().is_some_and(|word| self.title.contains(&word.stem));
        let is_titled = self
            .question
            .content
            .iter()
            .any(|word| self.title.iter().any(|it| words::are_alike(it, &word.stem)));
        (is_titled || is_cited || says_all || matched.needs_previous).then_some(matched)
    }

    /// Whether a word of the question may stand in another sentence of the record.
    fn may_be_elsewhere(&self, word: &Word) -> bool {
        match self.question.kind {
            Kind::Evidence => false,
            Kind::Person => word.is_qualifier && !word.is_name,
            _ => word.is_qualifier,
        }
    }

    /// Whether the sentence is about its record, or about the first thing that the question names: “Scott reached the
    /// Pole” tells nothing of Amundsen, whatever the title is.
    fn is_subject(&self, tokens: &[Token<'_>], matched: &Match) -> bool {
        if matches!(self.question.kind, Kind::Person | Kind::Count(_) | Kind::Reason) {
            return true;
        }
        let first = self.question.content.first().map_or("", |word| word.stem.as_str());
        let is_first =
            |token: &Token<'_>| stems(&token.lower).iter().any(|stem| words::are_alike(stem, first));
        let verb = matched.places.iter().copied().filter(|place| !self.title_has(&tokens[*place])).max();
        let is_object = |verb: usize| {
            tokens.get(verb + 1).is_some_and(|it| matches!(it.lower.as_str(), "it" | "him" | "her" | "them"))
        };
        let until = verb.unwrap_or(tokens.len().min(8));
        let before = &tokens[..until];
        if before.iter().any(is_first) || verb.is_some_and(|verb| is_first(&tokens[verb])) {
            return true;
        }
        // The record's own subject, by name or by pronoun.
        let is_about_first = self.title.iter().any(|title| words::are_alike(title, first));
        let is_about =
            is_about_first || matched.needs_previous || (self.question.has_pronoun && self.source.is_cited);
        let is_done_to_it = self.question.kind != Kind::Evidence && verb.is_some_and(is_object);
        let is_own = before.iter().enumerate().any(|(at, token)| {
            // “The ship was launched”, in a record that is tagged with it.
            let is_tagged = at < 2
                && !self.source.is_person
                && stems(&token.lower).iter().any(|stem| self.source.tags.contains(stem));
            is_subject_pronoun(tokens, at) || self.title_has(token) || is_tagged
        });
        is_about && (is_done_to_it || is_own)
    }

    fn title_has(&self, token: &Token<'_>) -> bool {
        stems(&token.lower).iter().any(|stem| self.subject.contains(stem))
    }

    /// Whether a sentence of a person's record says of that person what the first of these places says.
    fn is_of_person(&self, tokens: &[Token<'_>], places: &[usize]) -> bool {
        let is_named = self.question.content.iter().any(|word| self.title.contains(&word.stem));
        let Some(&verb) = places.first().filter(|_| self.source.is_person && !is_named) else { return false };
        let clause = value::clause(tokens, Some(verb)).start..verb;
        let is_pronoun = |at: usize| matches!(tokens[at].lower.as_str(), "he" | "she" | "they");
        let is_own = |at: &usize| is_pronoun(*at) || self.title_has(&tokens[*at]);
        let subject = clause.clone().rev().find(is_own);
        // “The town where the ship was built” goes on about something else.
        let turns =
            |at: usize| matches!(tokens[at].lower.as_str(), "where" | "which" | "that" | "whom" | "whose");
        subject.is_some_and(|subject| !(subject..verb).any(turns))
    }
}

/// Whether a pronoun is the subject, as far as its form and place tell: “it” may also be what something is done to.
fn is_subject_pronoun(tokens: &[Token<'_>], at: usize) -> bool {
    match tokens[at].lower.as_str() {
        "he" | "she" | "they" => true,
        "it" => at.checked_sub(1).map(|before| &tokens[before]).is_none_or(|before| {
            let joins = ["and", "but", "when", "where", "while", "as", "that", "because", "then", "so"];
            before.after.is_some() || joins.contains(&before.lower.as_str())
        }),
        "his" | "her" | "its" | "their" => at == 0,
        _ => false,
    }
}

fn leans(tokens: &[Token<'_>]) -> bool {
    !tokens.is_empty() && is_subject_pronoun(tokens, 0)
}

fn is_year(stem: &str) -> bool {
    stem.len() == 4 && stem.bytes().all(|byte| byte.is_ascii_digit())
}

/// A date as it is written in a sentence.
pub(crate) fn written(date: jiff::civil::Date) -> String {
    now::day(date).split_once(", ").map(|(_, date)| date.to_owned()).unwrap_or_default()
}

/// Whether the sentence says that this is done to what it speaks of: “built her”, “her building”.
fn acts_on_it(word: &Word, tokens: &[Token<'_>], said: &[Vec<String>]) -> bool {
    let is_it = |stems: &Vec<String>| stems.iter().any(|stem| words::are_alike(stem, &word.stem));
    let near = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |it| it.lower.as_str());
    said.iter().position(is_it).is_some_and(|at| {
        matches!(near(Some(at + 1)), "it" | "her" | "him" | "them")
            || matches!(near(at.checked_sub(1)), "its" | "her" | "his" | "their")
    })
}
