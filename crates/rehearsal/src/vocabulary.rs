//! The words that belong to a tool: those of its name, its description and its guide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::guide::quoted;
use crate::parameter::name_words;
use crate::sentences;
use crate::toolbox::{Tool, Toolbox};
use crate::words;

/// Words of everyday requests that mean the same to a tool.
#[rustfmt::skip]
const SAME: &[(&str, &str)] = &[
    ("appointment", "meet"), ("arrange", "book"), ("availability", "free"), ("available", "free"),
    ("begin", "start"), ("busy", "free"), ("bye", "goodbye"), ("call", "talk"), ("correct", "valid"),
    ("date", "time"), ("datetime", "time"), ("event", "meet"), ("interview", "meet"), ("lookup", "find"),
    ("lunch", "meet"), ("moment", "time"), ("open", "start"), ("organise", "book"), ("organize", "book"),
    ("parse", "extract"), ("phone", "talk"), ("pull", "extract"), ("reserve", "book"), ("ring", "talk"),
    ("schedule", "book"), ("search", "find"), ("set", "book"), ("slot", "free"), ("speak", "talk"),
    ("spoken", "talk"), ("switch", "start"), ("telephone", "talk"), ("validate", "valid"),
    ("verify", "valid"), ("voice", "talk"), ("well-formed", "valid"),
];

/// Words that so many tools could mean that they mean none alone.
pub(crate) fn is_general(meaning: &str) -> bool {
    ["start", "find", "look", "time", "write", "check", "create", "get", "put", "make", "add", "list", "end"]
        .iter()
        .any(|word| words::stem(word) == meaning)
}

/// The same by stems, made once: every word of every guide is looked up in it.
static SAME_STEMS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| SAME.iter().map(|(word, same)| (words::stem(word), words::stem(same))).collect());

/// A stem, or the one that stands for its meaning.
pub(crate) fn meaning(stem: String) -> String {
    SAME_STEMS.get(&stem).cloned().unwrap_or(stem)
}

/// The meanings of a text's words.
pub(crate) fn meanings(text: &str) -> BTreeSet<String> {
    // “E-mail” is one word, however it is cut.
    let all = words::subjects(text).into_iter().map(meaning);
    all.map(|stem| if stem == "mail" { "email".to_owned() } else { stem })
        .filter(|stem| stem.len() > 1)
        .collect()
}

/// The words of one tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    /// Those that name what it does or when to use it.
    pub(crate) strong: BTreeSet<String>,
    /// Those that merely occur where it is described.
    pub(crate) weak: BTreeSet<String>,
    /// The words before each example. A request that has all of them means it.
    leads: Vec<BTreeSet<String>>,
}

impl Vocabulary {
    pub(crate) fn of(tool: &Tool<'_>) -> Self {
        let mut own = Self::default();
        own.strong.extend(meanings(&name_words(tool.name).join(" ")));
        own.strong.extend(meanings(&tool.guide.heading));
        for (nth, sentence) in sentences::sentences(tool.description).iter().enumerate() {
            let text = sentence.text.as_str();
            let lower = text.to_lowercase();
            if lower.contains("never ") || lower.contains(" not ") {
                // What it is not for is no reason to call it.
                continue;
            }
            if lower.starts_with("use it") || lower.starts_with("use this") {
                let purpose = lower.split("instead of").next().unwrap_or_default();
                own.strong.extend(meanings(purpose));
            } else {
                own.weak.extend(meanings(text));
            }
            if nth == 0 {
                own.strong.extend(meanings(text.split_whitespace().next().unwrap_or_default()));
            }
        }
        own.weak.extend(meanings(&tool.guide.summary));
        for example in &tool.guide.examples {
            let lead = meanings(&example.lead);
            own.weak.extend(lead.iter().cloned());
            own.leads.extend((2..=6).contains(&lead.len()).then_some(lead));
            quoted(&example.lead).iter().for_each(|phrase| own.strong.extend(meanings(phrase)));
        }
        for word in ["us", "use", "user", "person"] {
            own.strong.remove(word);
        }
        own
    }

    /// The words that mean the tool in this request because an example of its guide says all of them.
    pub(crate) fn led(&self, request: &BTreeSet<String>) -> BTreeSet<&String> {
        self.leads.iter().filter(|lead| lead.is_subset(request)).flatten().collect()
    }

    /// How much a word belongs to it.
    pub(crate) fn weight(&self, meaning: &str) -> f64 {
        if self.strong.contains(meaning) {
            1.0
        } else if self.weak.contains(meaning) {
            0.5
        } else {
            0.0
        }
    }

    /// Whether a stem is one of its own words.
    pub(crate) fn has(&self, stem: &str) -> bool {
        self.strong.contains(&meaning(stem.to_owned()))
    }
}

/// How rare each word is among the declared tools: what every tool says tells none of them apart.
pub(crate) struct Rarity {
    counts: BTreeMap<String, usize>,
    tools: usize,
}

impl Rarity {
    pub(crate) fn of(vocabularies: &[Vocabulary]) -> Self {
        let mut counts = BTreeMap::new();
        for word in vocabularies.iter().flat_map(|own| own.strong.union(&own.weak)) {
            *counts.entry(word.clone()).or_default() += 1;
        }
        Self { counts, tools: vocabularies.len() }
    }

    pub(crate) fn weight(&self, meaning: &str) -> f64 {
        let count = self.counts.get(meaning).copied().unwrap_or(1).max(1);
        (1.0 + self.tools as f64 / count as f64).ln()
    }
}

/// The vocabularies of all tools, in their order.
pub(crate) fn all(toolbox: &Toolbox<'_>) -> Vec<Vocabulary> {
    toolbox.tools.iter().map(Vocabulary::of).collect()
}
