//! Recognises the tool that a plain request means.
//!
//! A tool is chosen on strong evidence only: the request must say every word of its name or of its guide's heading, as
//! far as they tell it from others, and hardly anything that the tool has nothing to do with. A request that says only a
//! part of that is not carried out by the nearest tool; the user is told which one that is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::fill::{self, Arguments, FillContext};
use crate::now::Now;
use crate::parameter::{Kind, name_words};
use crate::parsed_message::ParsedMessage;
use crate::toolbox::{Tool, Toolbox};
use crate::words::{self, Token};

pub(crate) struct Request<'t, 'a> {
    pub(crate) tool: &'t Tool<'a>,
    pub(crate) filled: Arguments<'a>,
}

/// Tools that answer questions: every question that means no other tool goes to them.
const LOOKUPS: [&str; 2] = ["kb_search", "kb_get"];
/// Words of names that tell no tool from another.
#[rustfmt::skip]
const GENERIC: &[&str] =
    &[
        "calendar", "session", "get", "find", "look", "lookup", "start", "begin", "switch", "rather", "tool", "user", "run", "fetch",
        "profile", "address", "new",
    ];

/// Words that mean the same to a tool.
#[rustfmt::skip]
const MEANINGS: &[(&str, &[&str])] = &[
    ("create", &["book", "schedule", "arrange", "reserve", "organise", "organize", "set", "plan", "add", "put", "make", "create", "generate", "draw", "paint", "sketch", "illustrate", "need"]),
    ("image", &["image", "picture", "drawing", "photo", "illustration", "draw", "paint", "sketch", "illustrate"]),
    ("meet", &["meeting", "appointment", "event", "booking", "lunch", "dinner", "breakfast", "coffee", "interview", "review", "workshop", "demo", "standup", "meet", "bookings", "calendar", "agenda", "diary"]),
    ("cancel", &["cancel", "delete", "remove", "scrap", "drop"]),
    ("move", &["move", "reschedule", "postpone", "push", "shift", "delay", "change"]),
    ("list", &["list", "show", "display", "view"]),
    ("free", &["free", "available", "availability", "busy", "slot"]),
    ("talk", &["talk", "voice", "speak", "phone", "telephone", "ring", "call", "spoken"]),
    ("end", &["end", "hang", "stop", "finish", "close"]),
    ("valid", &["valid", "validate", "verify", "correct", "well-formed", "right", "check", "ok"]),
    ("email", &["email", "e-mail", "mail"]),
    ("format", &["format", "written", "write", "spell", "until"]),
    ("time", &["time", "date", "datetime", "moment"]),
    ("extract", &["extract", "parse", "pull"]),
];
/// Requests that are told what to do with: a message that begins so and means no tool is not a question.
#[rustfmt::skip]
const ORDERS: &[&str] = &[
    "add", "book", "buy", "calculate", "call", "cancel", "change", "convert", "create", "delete", "download", "draw", "email",
    "execute", "generate", "install", "make", "move", "open", "order", "paint", "pay", "phone", "play", "print", "remind", "remove",
    "reschedule", "reserve", "ring", "run", "schedule", "send", "sing", "sketch", "start", "stop", "summarise", "summarize",
    "transfer", "translate", "turn", "update", "upload", "write",
];

/// The same by word and by stem, made once: every word of every tool is looked up in it.
static MEANINGS_BY_STEM: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut by_stem: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (meaning, known) in MEANINGS {
        for word in *known {
            by_stem.entry((*word).to_owned()).or_default().push((*meaning).to_owned());
        }
    }
    // Forms of a word mean the same, unless they are words of their own: a booking is no order to book.
    for (word, meanings) in by_stem.clone() {
        by_stem.entry(words::stem(&word)).or_insert(meanings);
    }
    by_stem
});

fn is_generic(word: &str) -> bool {
    GENERIC.iter().any(|it| *it == word || words::stem(it) == words::stem(word))
}

/// The meanings of one word at its place. “A call” is an appointment or this one; “call me” is a wish to talk.
fn meanings(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let lower = tokens[at].lower.trim_end_matches("'s");
    if words::is_stop_word(lower) && !matches!(lower, "show" | "need") {
        return Vec::new();
    }
    let stem = words::stem(lower);
    let mut meant =
        MEANINGS_BY_STEM.get(lower).or_else(|| MEANINGS_BY_STEM.get(&stem)).cloned().unwrap_or_default();
    let before = at.checked_sub(1).map_or("", |at| tokens[at].lower.as_str());
    let is_noun =
        matches!(before, "a" | "an" | "the" | "my" | "our" | "this" | "that" | "next" | "video" | "short");
    if lower == "call" && is_noun {
        meant.push("meet".into());
    }
    if meant.is_empty() { vec![stem] } else { meant }
}

fn meanings_of(text: &str) -> BTreeSet<String> {
    let tokens = words::tokens(text, 60);
    (0..tokens.len()).flat_map(|at| meanings(&tokens, at)).collect()
}

/// The words that together mean a tool: those of its name, or those of its heading.
fn cores(tool: &Tool<'_>) -> Vec<BTreeSet<String>> {
    let texts = [name_words(tool.name).join(" "), tool.guide.heading.clone()];
    let cores = texts.iter().map(|text| {
        let telling: Vec<&str> = text.split(' ').filter(|word| !is_generic(&word.to_lowercase())).collect();
        meanings_of(&telling.join(" "))
    });
    cores.filter(|core| !core.is_empty() && core.len() <= 3).collect()
}

/// What a request is compared with.
pub(crate) struct Recogniser<'t, 'a> {
    pub(crate) toolbox: &'t Toolbox<'a>,
    pub(crate) now: &'t Now,
    pub(crate) is_spoken: bool,
    /// The last thing that the user asked.
    pub(crate) before: Option<&'t str>,
}

impl<'t, 'a> Recogniser<'t, 'a> {
    pub(crate) fn recognise(&self, text: &str) -> Option<Request<'t, 'a>> {
        let message = ParsedMessage::new(text, self.now);
        if message.tokens.is_empty() {
            return None;
        }
        self.record(&message).or_else(|| self.by_words(&message))
    }

    fn usable(&self) -> impl Iterator<Item = &'t Tool<'a>> {
        let is_usable =
            |tool: &&Tool<'_>| self.toolbox.is_usable(tool, self.is_spoken) && !LOOKUPS.contains(&tool.name);
        self.toolbox.tools.iter().filter(is_usable)
    }

    fn by_words(&self, message: &ParsedMessage<'_>) -> Option<Request<'t, 'a>> {
        let mut best: Option<(usize, Request<'t, 'a>)> = None;
        for tool in self.usable().filter(|tool| !fill::has_inexpressible_parameter(tool)) {
            // “Who books a meeting?” is a question, not a request.
            if tool.is_action() && message.is_question() {
                continue;
            }
            let filled = self.fill(tool, message);
            if let Some(score) = self.score(tool, message, &filled)
                && best.as_ref().is_none_or(|(best, _)| score > *best)
            {
                best = Some((score, Request { tool, filled }));
            }
        }
        best.map(|(_, request)| request)
    }

    /// How many words speak for the tool, if they are enough.
    fn score(&self, tool: &Tool<'_>, message: &ParsedMessage<'_>, filled: &Arguments<'_>) -> Option<usize> {
        let said = self.said(message, tool);
        let hits = cores(tool).into_iter().filter(|core| core.iter().all(|word| said.contains(word)));
        let core = hits.max_by_key(BTreeSet::len)?;
        let own: BTreeSet<String> =
            meanings_of(tool.description).into_iter().chain(meanings_of(tool.summary())).collect();
        let mut misses = 0;
        let mut plain_hits = 0;
        for at in 0..message.tokens.len() {
            let meant = meanings(&message.tokens, at);
            let is_value = filled.used.contains(&at) || message.when.used.contains(&at);
            let is_hit = meant.iter().any(|word| core.contains(word));
            plain_hits += usize::from(is_hit);
            let is_name = message.names.iter().any(|name| name.contains(&at));
            let is_known = is_generic(&message.tokens[at].lower)
                || meant.is_empty()
                || meant.iter().any(|it| own.contains(it));
            misses += usize::from(!is_hit && !is_value && !is_name && !is_known);
        }
        let needs_nothing = tool.properties().all(|(name, _)| !tool.requires(name));
        let is_clean = match tool.is_action() && needs_nothing {
            // Nothing would stop such a call, so the request must be about nothing else: “call me”, not “call Anna”.
            true => {
                let has_topic = message.topic.is_some();
                let extra =
                    message.names.iter().flat_map(Clone::clone).chain(message.when.used.iter().copied());
                let outside = extra
                    .filter(|at| !message.topic.as_ref().is_some_and(|topic| topic.contains(at)))
                    .count();
                let misses = misses
                    - message.topic.clone().map_or(0, |topic| self.missed(topic, message, &core, &own));
                misses == 0 && outside == 0 && plain_hits > usize::from(has_topic)
            }
            false if tool.is_action() => misses <= 2 * core.len(),
            false => {
                misses <= usize::from(!message.when.used.is_empty() || !filled.used.is_empty()) + 1
                    && self.has_what_it_needs(tool, message, filled)
            }
        };
        is_clean.then_some(2 * core.len() + usize::from(filled.missing.is_empty()))
    }

    fn missed(
        &self,
        place: std::ops::Range<usize>,
        message: &ParsedMessage<'_>,
        core: &BTreeSet<String>,
        own: &BTreeSet<String>,
    ) -> usize {
        let is_miss = |at: &usize| {
            let meant = meanings(&message.tokens, *at);
            let is_name = message.names.iter().any(|name| name.contains(at));
            !meant.is_empty()
                && !is_name
                && !message.when.used.contains(at)
                && !meant.iter().any(|it| core.contains(it) || own.contains(it))
        };
        place.filter(is_miss).count()
    }

    /// The meanings of a message, with those of its values and its form: an address is an e-mail, and “what do I have
    /// tomorrow?” asks for a list of what is in the calendar.
    fn said(&self, message: &ParsedMessage<'_>, tool: &Tool<'_>) -> BTreeSet<String> {
        let mut said: BTreeSet<String> =
            (0..message.tokens.len()).flat_map(|at| meanings(&message.tokens, at)).collect();
        let has = |known: &[&str]| message.tokens.iter().any(|token| known.contains(&token.lower.as_str()));
        let is_own = has(&["i", "my", "me", "we", "our"]);
        let has_time = !message.when.used.is_empty();
        if !message.addresses.is_empty() {
            said.insert("email".into());
        }
        if has_time {
            said.insert("time".into());
        }
        let asks = has(&["what", "what's", "which", "when", "any", "anything", "where"]);
        if asks && is_own {
            said.insert("list".into());
            if has_time && has(&["have", "got", "on", "planned", "scheduled"]) {
                said.insert("meet".into());
            }
        }
        // “Cancel it”, “move my 3 pm to 4 pm”: what is meant is found before it is changed.
        let is_pointed_at = has(&["it", "that", "this", "one"]) || (has_time && is_own);
        if is_pointed_at && crate::choose::lister(self.toolbox, tool).is_some() {
            said.insert("meet".into());
        }
        let values = usize::from(has_time) + usize::from(!message.addresses.is_empty());
        if values == 2 && tool.is_action() {
            said.insert("meet".into());
        }
        said
    }

    /// Only a moment may be missing from a question: “what is the e-mail address of Marit?” has nothing to check.
    fn has_what_it_needs(
        &self,
        tool: &Tool<'_>,
        message: &ParsedMessage<'_>,
        filled: &Arguments<'_>,
    ) -> bool {
        let is_time =
            |name: &&str| tool.property(name).is_some_and(|schema| Kind::of(name, schema).is_time());
        let asks = message.is_question() || !message.names.is_empty();
        !asks || filled.missing.iter().all(is_time)
    }

    fn fill(&self, tool: &Tool<'a>, message: &ParsedMessage<'_>) -> Arguments<'a> {
        let own: BTreeSet<String> =
            cores(tool).into_iter().flatten().chain(meanings_of(&name_words(tool.name).join(" "))).collect();
        let is_tool_word =
            |word: &str| is_generic(word) || meanings_of(word).iter().any(|meaning| own.contains(meaning));
        fill::fill(
            tool,
            message,
            &FillContext { now: self.now, before: self.before, is_tool_word: &is_tool_word },
        )
    }

    /// The same tool again, with everything that was said about it; `answer` is the last of it.
    pub(crate) fn complete(&self, tool: &str, text: &str, answer: &str) -> Option<Request<'t, 'a>> {
        let tool = self.toolbox.find(tool)?;
        let mut filled = self.fill(tool, &ParsedMessage::new(text, self.now));
        if let Some(&name) = filled.missing.first()
            && let Some(schema) = tool.property(name)
            && matches!(Kind::of(name, schema), Kind::Text | Kind::Name | Kind::Words | Kind::Id)
            && crate::choose::lister(self.toolbox, tool).is_none()
        {
            filled.values.insert(name.to_owned(), answer.trim().into());
            filled.missing.remove(0);
        }
        Some(Request { tool, filled })
    }

    /// A request that names a record by its id.
    fn record(&self, message: &ParsedMessage<'_>) -> Option<Request<'t, 'a>> {
        let tool = self.toolbox.find("kb_get")?;
        let filled = self.fill(tool, message);
        let is_short = message.tokens.len() <= filled.used.len() + 5;
        (filled.values.contains_key("id") && is_short).then_some(Request { tool, filled })
    }

    /// Whether a message tells someone to do something.
    pub(crate) fn is_order(&self, text: &str) -> bool {
        let tokens = words::tokens(text, 12);
        let polite = [
            "please", "can", "could", "would", "you", "just", "kindly", "i", "want", "need", "to", "i'd",
            "like", "let's", "now",
        ];
        let first = tokens.iter().find(|token| !polite.contains(&token.lower.as_str()));
        first.is_some_and(|token| ORDERS.binary_search(&token.lower.as_str()).is_ok())
    }

    /// The tool that shares the most with an order that none carries out.
    pub(crate) fn nearest(&self, text: &str) -> Option<&'t Tool<'a>> {
        let mut said = meanings_of(text);
        // So many things can be made that the word tells nothing.
        said.remove("create");
        let shared = |tool: &&Tool<'_>| {
            cores(tool).iter().map(|core| core.intersection(&said).count()).max().unwrap_or(0)
        };
        let mut tools: Vec<&Tool<'_>> =
            self.usable().filter(|tool| !fill::has_inexpressible_parameter(tool)).collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(shared(tool)));
        tools.first().copied().filter(|tool| shared(tool) > 0)
    }
}
