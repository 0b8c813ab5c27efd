//! The system instruction: who the agent is, which tools there are, how to go about it, and what day it is.
//!
//! What changes most often stands last, so that a provider can reuse what it has read before: everything up to the date
//! is the same in all conversations, and a written one keeps its whole instruction for the day. What time it is by now
//! it learns from a note beside the user's message, behind everything that was there before.

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::{Mode, Namespaces, SITUATION_HEADING, estimate_tokens};
use quarterdeck_runtime::{Budgets, LoadedTool, Session};
use serde_json::Value;

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

/// Which time an instruction tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToldTime {
    /// That of now, for a conversation with one instruction.
    Now,
    /// When the conversation began, which stays the same.
    Began(SystemTime),
}

/// How much of the tools' guides a prompt carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guides {
    Whole,
    /// A line for each; the model gets the rest with `describe_tool`.
    Summaries,
}

/// The part of an instruction that does not depend on the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) text: String,
    pub(crate) guides: Guides,
}

/// What is different for sessions with the same tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Audience {
    mode: Mode,
    budgets: Budgets,
    readable: Namespaces,
    guide_tokens: usize,
}

impl Audience {
    pub(crate) fn of(session: &Session, budgets: &Budgets, guide_tokens: usize) -> Self {
        let (mode, readable) = (session.mode(), session.readable_namespaces());
        Self { mode, budgets: *budgets, readable, guide_tokens }
    }
}

impl Prompts {
    /// The instruction up to the situation, which has its own heading.
    pub(crate) fn standing(&self, version: &str, tools: &[&LoadedTool], audience: &Audience) -> Standing {
        let mode = audience.mode;
        let mut text = self.core.trim().to_owned();
        if mode == Mode::Voice {
            text.push_str("\n\n");
            text.push_str(self.voice.trim());
        }
        // Tools of the other mode are declared, so that a refusal can say why; how they are used is of no use here.
        let usable = |tool: &&&LoadedTool| tool.metadata().allowed_modes.contains(&mode);
        let tools: Vec<&LoadedTool> = tools.iter().filter(usable).copied().collect();
        let guides = tool_part(&mut text, version, &tools, audience.guide_tokens);
        text.push_str("\n\n## How to work\n\n");
        text.push_str(&way_of_working(audience, &tools));
        Standing { text, guides }
    }
}

/// “It is 09:10 now.”
fn time_note(now: &Zoned) -> String {
    format!("It is {} now.", now.strftime("%H:%M"))
}

fn began_line(began: &Zoned, now: &Zoned) -> String {
    match began.date() == now.date() {
        true => format!("The conversation began at {}.", began.strftime("%H:%M")),
        false => "The conversation began on another day.".into(),
    }
}

impl Situation {
    /// What time it is, if an instruction that tells when the conversation began no longer says so.
    pub(crate) fn time_note(&self, began: SystemTime, now: SystemTime) -> Option<String> {
        let (began, now) = (self.local(began), self.local(now));
        let minute = |at: &Zoned| (at.date(), at.hour(), at.minute());
        (minute(&began) != minute(&now)).then(|| time_note(&now))
    }

    /// The end of an instruction: the day, the user, and when the conversation began or what time it is.
    pub(crate) fn describe(&self, mode: Mode, now: SystemTime, told: ToldTime) -> String {
        let now = self.local(now);
        let today = self.today(&now, mode);
        let time = match told {
            ToldTime::Now => time_note(&now),
            ToldTime::Began(at) => began_line(&self.local(at), &now),
        };
        format!("{SITUATION_HEADING}{today}\n\n{time}\n")
    }

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
            let _ = writeln!(text, "{}\n</tool>", guide_in_prompt(tool.documentation()));
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

/// A guide in fewer tokens: with its JSON on one line.
fn guide_in_prompt(guide: &str) -> String {
    let mut blocks = guide.trim().split("```json\n");
    let mut text = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        let (json, rest) = block.split_once("\n```").unwrap_or((block, ""));
        let compact = serde_json::from_str::<Value>(json).map(|value| value.to_string());
        let _ = write!(text, "```json\n{}\n```{rest}", compact.as_deref().unwrap_or(json));
    }
    text
}

/// The retrieval-first loop of a mode.
fn way_of_working(audience: &Audience, tools: &[&LoadedTool]) -> String {
    let Audience { mode, budgets, readable, .. } = audience;
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
        // A search in any other is refused, so that it need not be tried.
        let readable: Vec<_> = readable.iter().map(|it| it.as_str()).collect();
        rules.push(format!("This user may search the namespaces {}.", readable.join(", ")));
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
    rules.push(
        "Act only when it is confirmed. The page asks the user for every confirmation, not you.".into(),
    );
    rules.push("If two attempts found nothing, say that you do not know.".into());
    let numbered = rules.iter().enumerate().map(|(number, rule)| format!("{}. {rule}", number + 1));
    numbered.collect::<Vec<_>>().join("\n")
}
