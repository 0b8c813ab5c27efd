//! Which tool a plain request means, if any.

use std::collections::BTreeSet;

use crate::fill::{self, Around, Filled};
use crate::now::Now;
use crate::parameter::Kind;
use crate::reading::Reading;
use crate::template;
use crate::toolbox::{Tool, Toolbox};
use crate::vocabulary::{self, Rarity, Vocabulary};

/// How much of a request must be a tool's own words, beside what became arguments. A question needs more: most
/// questions are for the knowledge base.
const ENOUGH: f64 = 0.5;
const ENOUGH_FOR_A_QUESTION: f64 = 0.62;

/// Tools that are never chosen by their words: the search is the answer to everything else, and blocking a person is a
/// matter of conduct.
const NOT_BY_WORDS: &[&str] = &["kb_search", "kb_get", "describe_tool", "ignore_user"];

/// A tool and what the request gives it.
pub(crate) struct Recognised<'t, 'a> {
    pub(crate) tool: &'t Tool<'a>,
    pub(crate) filled: Filled<'a>,
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

    /// The tool that a request means. `before` is what the person asked earlier.
    pub(crate) fn recognise(&self, text: &str, before: Option<&str>) -> Option<Recognised<'t, 'a>> {
        let reading = Reading::new(text, self.now);
        if reading.tokens.is_empty() {
            return None;
        }
        if let Some(recognised) = self.by_example(&reading) {
            return Some(recognised);
        }
        if let Some(recognised) = self.record(&reading) {
            return Some(recognised);
        }
        let mut best: Option<(f64, Recognised<'t, 'a>)> = None;
        for (tool, own) in self.toolbox.tools.iter().zip(&self.vocabularies) {
            if NOT_BY_WORDS.contains(&tool.name)
                || fill::is_unsayable(tool)
                || self.is_of_the_other_mode(tool)
            {
                continue;
            }
            // Nobody asks “who books a meeting?” to have one booked.
            if tool.is_action() && reading.is_question() {
                continue;
            }
            let filled = self.fill(tool, own, &reading, before);
            if is_rather_a_question(tool, &reading, &filled) {
                continue;
            }
            let score = self.score(own, &reading, &filled.used);
            let enough = if reading.is_question() { ENOUGH_FOR_A_QUESTION } else { ENOUGH };
            if score >= enough && best.as_ref().is_none_or(|(best, _)| score > *best) {
                best = Some((score, Recognised { tool, filled }));
            }
        }
        best.map(|(_, recognised)| recognised)
    }

    /// A call is begun in writing and ended in speech, whichever of the two is declared here.
    fn is_of_the_other_mode(&self, tool: &Tool<'_>) -> bool {
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
    ) -> Option<Recognised<'t, 'a>> {
        let at = self.toolbox.tools.iter().position(|it| it.name == tool)?;
        let (tool, own) = (&self.toolbox.tools[at], &self.vocabularies[at]);
        let mut filled = self.fill(tool, own, &Reading::new(text, self.now), before);
        if let Some(&name) = filled.missing.first()
            && let Some(schema) = tool.property(name)
            && matches!(
                Kind::of(name, schema),
                Kind::Text | Kind::Name | Kind::Words | Kind::Title | Kind::Id
            )
        {
            filled.arguments.insert(name.to_owned(), answer.trim().into());
            filled.missing.remove(0);
        }
        Some(Recognised { tool, filled })
    }

    fn fill(
        &self,
        tool: &Tool<'a>,
        own: &Vocabulary,
        reading: &Reading<'_>,
        before: Option<&str>,
    ) -> Filled<'a> {
        let is_tool_word = |stem: &str| own.has(stem);
        fill::fill(tool, reading, &Around { now: self.now, before, is_tool_word: &is_tool_word })
    }

    /// A request that says what an example of a guide says.
    fn by_example(&self, reading: &Reading<'_>) -> Option<Recognised<'t, 'a>> {
        let is_callable =
            |tool: &&Tool<'_>| !NOT_BY_WORDS.contains(&tool.name) && !self.is_of_the_other_mode(tool);
        let callable = self.toolbox.tools.iter().filter(is_callable);
        callable.into_iter().find_map(|tool| {
            let arguments =
                tool.guide.examples.iter().find_map(|it| template::arguments(it, &reading.tokens))?;
            Some(Recognised { tool, filled: Filled { arguments, ..Filled::default() } })
        })
    }

    /// A request that names a record by its id.
    fn record(&self, reading: &Reading<'_>) -> Option<Recognised<'t, 'a>> {
        let tool = self.toolbox.find("kb_get")?;
        let own = Vocabulary::default();
        let filled = self.fill(tool, &own, reading, None);
        let rest: BTreeSet<usize> =
            (0..reading.tokens.len()).filter(|at| !filled.used.contains(at)).collect();
        let is_short = rest.len() <= 5;
        (filled.arguments.contains_key("id") && is_short).then_some(Recognised { tool, filled })
    }

    /// Which part of the request's words, weighed by how rare they are, are the tool's.
    fn score(&self, own: &Vocabulary, reading: &Reading<'_>, used: &BTreeSet<usize>) -> f64 {
        let (mut matched, mut all) = (0.0, 0.0);
        let mut is_meant = false;
        let led = own.led(&reading.meanings);
        // “Write 2026-03-01” means somebody; “find ice” could mean anybody.
        let has_value = reading.values().any(|at| used.contains(&at));
        for (at, token) in reading.tokens.iter().enumerate() {
            let is_name = reading.names.iter().any(|name| name.contains(&at));
            for meaning in vocabulary::meanings(&token.lower) {
                let weight = if led.contains(&meaning) { 1.0 } else { own.weight(&meaning) };
                // What became an argument speaks neither for the tool nor against it, unless it is its word too.
                if used.contains(&at) && weight < 1.0 {
                    continue;
                }
                // A name is nobody's word: “is Anna free?” is about being free.
                let rarity = self.rarity.weight(&meaning) * if is_name && weight == 0.0 { 0.3 } else { 1.0 };
                matched += rarity * weight;
                all += rarity;
                is_meant |= weight == 1.0 && (has_value || !vocabulary::is_general(&meaning));
            }
        }
        if is_meant && all > 0.0 { matched / all } else { 0.0 }
    }
}

/// “What is the e-mail address of Marit?” has the words of a tool that checks addresses, but nothing to check. Only a
/// moment may be missing from a question.
fn is_rather_a_question(tool: &Tool<'_>, reading: &Reading<'_>, filled: &Filled<'_>) -> bool {
    let is_time = |name: &&str| {
        let kind = tool.property(name).map(|schema| Kind::of(name, schema));
        matches!(
            kind,
            Some(Kind::Start | Kind::End | Kind::Moment | Kind::FirstDay | Kind::LastDay | Kind::Day)
        )
    };
    let asks = reading.is_question() || !reading.names.is_empty();
    asks && !tool.is_action() && !filled.missing.iter().all(is_time)
}
