//! Recognises the tool that a plain request means.

use std::collections::BTreeSet;

use crate::fill::{self, Arguments, FillContext};
use crate::now::Now;
use crate::parameter::Kind;
use crate::parsed_message::ParsedMessage;
use crate::template;
use crate::toolbox::{Tool, Toolbox};
use crate::vocabulary::{self, Rarity, Vocabulary};

/// The share of a request that must be a tool's own words, apart from arguments. A question needs more: most questions
/// are for the knowledge base.
const MIN_SCORE: f64 = 0.5;
const MIN_QUESTION_SCORE: f64 = 0.62;

/// Tools that are not chosen by their words: the search is the fallback, and blocking a user is decided by
/// moderation.
const EXCLUDED_TOOLS: &[&str] = &["kb_search", "kb_get", "describe_tool", "ignore_user"];

pub(crate) struct RecognisedRequest<'t, 'a> {
    pub(crate) tool: &'t Tool<'a>,
    pub(crate) filled: Arguments<'a>,
}

/// What a request is compared with. Made once for a reply, because it reads every guide.
pub(crate) struct Recogniser<'t, 'a> {
    toolbox: &'t Toolbox<'a>,
    now: &'t Now,
    vocabularies: Vec<Vocabulary>,
    rarity: Rarity,
}

impl<'t, 'a> Recogniser<'t, 'a> {
    pub(crate) fn new(toolbox: &'t Toolbox<'a>, now: &'t Now) -> Self {
        let vocabularies = vocabulary::all(toolbox);
        let rarity = Rarity::of(&vocabularies);
        Self { toolbox, now, vocabularies, rarity }
    }

    /// The tool that a request means. `before` is what the user asked earlier.
    pub(crate) fn recognise(&self, text: &str, before: Option<&str>) -> Option<RecognisedRequest<'t, 'a>> {
        let message = ParsedMessage::new(text, self.now);
        if message.tokens.is_empty() {
            return None;
        }
        if let Some(recognised) = self.by_example(&message) {
            return Some(recognised);
        }
        if let Some(recognised) = self.record(&message) {
            return Some(recognised);
        }
        let mut best: Option<(f64, RecognisedRequest<'t, 'a>)> = None;
        for (tool, own) in self.toolbox.tools.iter().zip(&self.vocabularies) {
            if EXCLUDED_TOOLS.contains(&tool.name)
                || fill::has_inexpressible_parameter(tool)
                || self.is_for_other_mode(tool)
            {
                continue;
            }
            // “Who books a meeting?” is a question, not a request.
            if tool.is_action() && message.is_question() {
                continue;
            }
            let filled = self.fill(tool, own, &message, before);
            if is_rather_a_question(tool, &message, &filled) {
                continue;
            }
            let score = self.score(own, &message, &filled.used);
            let enough = if message.is_question() { MIN_QUESTION_SCORE } else { MIN_SCORE };
            if score >= enough && best.as_ref().is_none_or(|(best, _)| score > *best) {
                best = Some((score, RecognisedRequest { tool, filled }));
            }
        }
        best.map(|(_, recognised)| recognised)
    }

    /// A voice session is started in text and ended in voice, even if both tools are declared.
    fn is_for_other_mode(&self, tool: &Tool<'_>) -> bool {
        match self.now.is_spoken {
            Some(true) => tool.name == "start_voice_session",
            Some(false) => tool.name == "end_voice_session",
            None => false,
        }
    }

    /// The same tool again, with everything that was said about it, and the last message as the answer to what was
    /// asked for.
    pub(crate) fn complete(
        &self,
        tool: &str,
        text: &str,
        answer: &str,
        before: Option<&str>,
    ) -> Option<RecognisedRequest<'t, 'a>> {
        let at = self.toolbox.tools.iter().position(|it| it.name == tool)?;
        let (tool, own) = (&self.toolbox.tools[at], &self.vocabularies[at]);
        let mut filled = self.fill(tool, own, &ParsedMessage::new(text, self.now), before);
        if let Some(&name) = filled.missing.first()
            && let Some(schema) = tool.property(name)
            && matches!(
                Kind::of(name, schema),
                Kind::Text | Kind::Name | Kind::Words | Kind::Title | Kind::Id
            )
        {
            filled.values.insert(name.to_owned(), answer.trim().into());
            filled.missing.remove(0);
        }
        Some(RecognisedRequest { tool, filled })
    }

    fn fill(
        &self,
        tool: &Tool<'a>,
        own: &Vocabulary,
        message: &ParsedMessage<'_>,
        before: Option<&str>,
    ) -> Arguments<'a> {
        let is_tool_word = |stem: &str| own.has(stem);
        fill::fill(tool, message, &FillContext { now: self.now, before, is_tool_word: &is_tool_word })
    }

    /// A request that says what an example of a guide says.
    fn by_example(&self, message: &ParsedMessage<'_>) -> Option<RecognisedRequest<'t, 'a>> {
        let is_callable =
            |tool: &&Tool<'_>| !EXCLUDED_TOOLS.contains(&tool.name) && !self.is_for_other_mode(tool);
        let callable = self.toolbox.tools.iter().filter(is_callable);
        callable.into_iter().find_map(|tool| {
            let values =
                tool.guide.examples.iter().find_map(|it| template::arguments(it, &message.tokens))?;
            Some(RecognisedRequest { tool, filled: Arguments { values, ..Arguments::default() } })
        })
    }

    /// A request that names a record by its id.
    fn record(&self, message: &ParsedMessage<'_>) -> Option<RecognisedRequest<'t, 'a>> {
        let tool = self.toolbox.find("kb_get")?;
        let own = Vocabulary::default();
        let filled = self.fill(tool, &own, message, None);
        let rest: BTreeSet<usize> =
            (0..message.tokens.len()).filter(|at| !filled.used.contains(at)).collect();
        let is_short = rest.len() <= 5;
        (filled.values.contains_key("id") && is_short).then_some(RecognisedRequest { tool, filled })
    }

    /// Which part of the request's words, weighed by how rare they are, are the tool's.
    fn score(&self, own: &Vocabulary, message: &ParsedMessage<'_>, used: &BTreeSet<usize>) -> f64 {
        let (mut matched, mut all) = (0.0, 0.0);
        let mut is_meant = false;
        let led = own.led(&message.meanings);
        // “Write 2026-03-01” has a value for this tool; “find ice” could mean any tool.
        let has_value = message.values().any(|at| used.contains(&at));
        for (at, token) in message.tokens.iter().enumerate() {
            let is_name = message.names.iter().any(|name| name.contains(&at));
            for meaning in vocabulary::meanings(&token.lower) {
                let weight = if led.contains(&meaning) { 1.0 } else { own.weight(&meaning) };
                // What became an argument speaks neither for the tool nor against it, unless it is its word too.
                if used.contains(&at) && weight < 1.0 {
                    continue;
                }
                // A name belongs to no tool: “is Anna free?” is about being free.
                let rarity = self.rarity.weight(&meaning) * if is_name && weight == 0.0 { 0.3 } else { 1.0 };
                matched += rarity * weight;
                all += rarity;
                is_meant |= weight == 1.0
                    && (has_value || !vocabulary::is_general(&meaning))
                    && !(message.is_question() && self.is_of_action(&meaning));
            }
        }
        if is_meant && all > 0.0 { matched / all } else { 0.0 }
    }

    /// Whether a word stands for something that a tool does. “Where did they meet?” asks for no list of meetings.
    fn is_of_action(&self, meaning: &str) -> bool {
        let mut tools = self.toolbox.tools.iter().zip(&self.vocabularies);
        tools.any(|(tool, own)| tool.is_action() && own.weight(meaning) == 1.0)
    }
}

/// “What is the e-mail address of Marit?” has the words of a tool that checks addresses, but nothing to check. Only a
/// moment may be missing from a question.
fn is_rather_a_question(tool: &Tool<'_>, message: &ParsedMessage<'_>, filled: &Arguments<'_>) -> bool {
    let is_time = |name: &&str| {
        let kind = tool.property(name).map(|schema| Kind::of(name, schema));
        matches!(
            kind,
            Some(Kind::Start | Kind::End | Kind::Moment | Kind::FirstDay | Kind::LastDay | Kind::Day)
        )
    };
    let asks = message.is_question() || !message.names.is_empty();
    asks && !tool.is_action() && !filled.missing.iter().all(is_time)
}
