//! The system instruction: who the agent is, what day it is, which tools there are, and how to go about it.
//!
//! What changes most often stands last, so that a provider can reuse what it has read before.

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::{Mode, estimate_tokens};
use quarterdeck_runtime::{Budgets, LoadedTool, Session};

/// The texts that an operator may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    /// Who the agent is, its tone, its policy: `prompts/core.md`.
    pub core: String,
    /// How it speaks: `prompts/voice-behavior.md`.
    pub voice: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            core: include_str!("../../../prompts/core.md").into(),
            voice: include_str!("../../../prompts/voice-behavior.md").into(),
        }
    }
}

/// The user's time zone and language.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Situation {
    /// IANA name of the time zone. An unknown one is ignored.
    pub time_zone: Option<String>,
    /// Language, as a BCP 47 tag.
    pub locale: Option<String>,
}

/// Which tools are declared to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Declare {
    /// All of them, those of the other mode included, so that the model learns why one is refused.
    #[default]
    All,
    /// Those of its mode.
    Mode,
}

impl Declare {
    /// The tools that are declared to a session's model.
    pub(crate) fn tools(self, session: &Session) -> impl Iterator<Item = &LoadedTool> {
        let mode = session.mode();
        let is_told =
            move |tool: &&LoadedTool| self == Self::All || tool.metadata().allowed_modes.contains(&mode);
        session.available_tools().filter(is_told)
    }
}

/// How much of the tools' guides a prompt carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guides {
    Whole,
    /// A line for each; the model gets the rest with `describe_tool`.
    Summaries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct System {
    pub(crate) text: String,
    pub(crate) guides: Guides,
}

impl Prompts {
    /// The instruction for a session at a moment.
    pub(crate) fn system(
        &self,
        session: &Session,
        tools: &[&LoadedTool],
        situation: &Situation,
        budgets: &Budgets,
        guide_tokens: usize,
        now: SystemTime,
    ) -> System {
        let now = situation.local(now);
        let mut text = self.core.trim().to_owned();
        if session.mode() == Mode::Voice {
            text.push_str("\n\n");
            text.push_str(self.voice.trim());
        }
        text.push_str("\n\n## Now\n\n");
        text.push_str(&situation.today(&now, session.mode()));
        // Tools of the other mode are declared, so that a refusal can say why; how they are used is of no use here.
        let usable = |tool: &&&LoadedTool| tool.metadata().allowed_modes.contains(&session.mode());
        let tools: Vec<&LoadedTool> = tools.iter().filter(usable).copied().collect();
        let guides = tool_part(&mut text, session.snapshot().version(), &tools, guide_tokens);
        text.push_str("\n\n## How to work\n\n");
        text.push_str(&way_of_working(session.mode(), budgets, &tools));
        let _ = write!(text, "\n\nIt is {} now.\n", now.strftime("%H:%M"));
        System { text, guides }
    }
}

impl Situation {
    fn local(&self, now: SystemTime) -> Zoned {
        let zone =
            self.time_zone.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
        Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone)
    }

    fn today(&self, now: &Zoned, mode: Mode) -> String {
        let zone = now.time_zone().iana_name().unwrap_or("UTC").to_owned();
        let mut text = format!(
            "Today is {} ({}). The user's time zone is {zone}",
            now.strftime("%A, %-d %B %Y"),
            now.strftime("%Y-%m-%d")
        );
        match self.locale.as_deref().filter(|locale| is_tag(locale)) {
            Some(locale) => {
                let _ = write!(text, " and their locale is {locale}.");
            }
            None => text.push('.'),
        }
        // Tools of both modes may be declared, so the prompt says which one this is.
        text.push_str(match mode {
            Mode::Text => " The conversation is written.",
            Mode::Voice => " The conversation is spoken.",
        });
        text
    }
}

/// Whether a text can be a language tag. It comes from outside and goes into the prompt, so nothing else may.
fn is_tag(text: &str) -> bool {
    (2..=35).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn tool_part(text: &mut String, version: &str, tools: &[&LoadedTool], guide_tokens: usize) -> Guides {
    let _ = write!(text, "\n\n## Tools (registry {version})\n\n");
    let whole: usize = tools.iter().map(|tool| tool.documentation().chars().count()).sum();
    if estimate_tokens(whole) <= guide_tokens {
        for tool in tools {
            let metadata = tool.metadata();
            let (id, category) = (&metadata.tool_id, metadata.category.as_str());
            let _ = writeln!(text, "<tool id=\"{id}\" category=\"{category}\">");
            let _ = writeln!(text, "{}\n</tool>", tool.documentation().trim());
        }
        return Guides::Whole;
    }
    for tool in tools {
        let metadata = tool.metadata();
        let _ =
            writeln!(text, "**{}** ({}): {}", metadata.tool_id, metadata.category.as_str(), tool.summary());
    }
    text.push_str("\nBefore you use a tool for the first time, read its guide with `describe_tool`.\n");
    Guides::Summaries
}

/// The retrieval-first loop of a mode.
fn way_of_working(mode: Mode, budgets: &Budgets, tools: &[&LoadedTool]) -> String {
    let has = |name: &str| tools.iter().any(|tool| tool.metadata().tool_id.as_str() == name);
    let mut rules = Vec::new();
    if has("kb_search") {
        let max = budgets.retrieval;
        rules.push(match mode {
            Mode::Text => format!(
                "When you lack context, search before you answer: at most {max} searches for one message."
            ),
            Mode::Voice => format!(
                "When you lack context, search before you answer: at most {max} searches for one thing the user \
                 says, with `top_k` {}, and not one after another.",
                budgets.top_k.unwrap_or(3)
            ),
        });
    }
    if has("kb_get") {
        rules.push("Fetch the best one or two records by their ids before you rely on them.".into());
    }
    // The only place that says how records are cited: each mode has its own rule.
    rules.push(match mode {
        Mode::Text => {
            "Answer from what you found, and cite the ids of the records you used, like [doc:hull].".into()
        }
        Mode::Voice => {
            "Answer from what you found, and name the records by their titles, never by their ids.".into()
        }
    });
    rules.push("Look before you act: check what is there, then act, and only once.".into());
    rules.push("Act only when it is confirmed; the page asks the user for every confirmation.".into());
    rules.push("If two attempts found nothing, say that you do not know.".into());
    let numbered = rules.iter().enumerate().map(|(number, rule)| format!("{}. {rule}", number + 1));
    numbered.collect::<Vec<_>>().join("\n")
}
