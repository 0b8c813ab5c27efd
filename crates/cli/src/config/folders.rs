//! What belongs to the site: its folders, its calendars, its logs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use quarterdeck_calendar::{CalendarConfig, ConfigError, LocalCalendar, Owner};
use quarterdeck_runtime::RequiredClaim;

use super::choices::{ListOf, choice, choices};
use super::kinds::{Bool, Claim, FOLDER, Line, Optional, Sha256};
use super::reader::Reader;
use super::value::Value;

/// Where things are.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) tools: PathBuf,
    pub(crate) kb: PathBuf,
    /// State lives here.
    pub(crate) data: PathBuf,
    pub(crate) prompts: Prompts,
    pub(crate) artifact: ArtifactRule,
}

/// Which artifact of the tools folder a server may load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArtifactRule {
    /// Whatever the folder compiles to.
    Compiled,
    /// The one that lies there, and only if it has this digest, where one is given. Nothing is compiled.
    Locked {
        /// Its content hash: 64 hexadecimal digits in small letters.
        digest: Option<String>,
    },
}

/// Where the agents' instructions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// Those that are compiled in.
    BuiltIn,
    Folder(PathBuf),
}

/// How the server logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logs {
    pub(crate) level: LogLevel,
    pub(crate) format: LogFormat,
}

choices! {
    /// How much is logged.
    enum LogLevel {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

choices! {
    /// What a log line looks like.
    enum LogFormat {
        /// For people at a terminal, else JSON.
        Auto = "auto",
        Human = "human",
        Json = "json",
    }
}

/// Reads `[tools]`, `[kb]`, `[data]` and `[prompts]`.
pub(super) fn folders(from: &mut Reader) -> Folders {
    from.table("tools", "The tools.");
    let tools = from.read("tools.folder", FOLDER, "tools", "The folder that holds the tool folders");
    let artifact = artifact(from);
    from.table("kb", "The knowledge base.");
    let kb = from.read("kb.folder", FOLDER, "kb", "The folder that holds the records");
    from.table("data", "What the server keeps.");
    let data = from.read("data.folder", FOLDER, ".quarterdeck", "The folder in which state lives");
    from.table("prompts", "The agents' instructions.");
    let about = "The folder that holds them; those that are built in are used when it is not there";
    let prompts = from.read("prompts.folder", FOLDER, "prompts", about);
    let prompts = if prompts.is_dir() {
        Prompts::Folder(prompts)
    } else {
        if from.is_set("prompts.folder") {
            let message = format!("`prompts.folder` is {prompts:?}, and there is no such folder");
            let help = "leave the key out to use the instructions that are built in";
            from.block_serve("prompts.folder", message, Some(help.into()));
        }
        Prompts::BuiltIn
    };
    Folders { tools, kb, data, prompts, artifact }
}

fn artifact(from: &mut Reader) -> ArtifactRule {
    let about =
        "Serve the artifact that lies in the tools folder and refuse anything else; nothing is compiled";
    let is_locked = from.read("tools.locked", Bool, false, about);
    let about =
        "The digest that the artifact must have, as `quarterdeck build` prints it; implies `tools.locked`";
    let digest = from.read("tools.artifact_digest", Optional(Sha256), Value::Absent, about);
    if is_locked || digest.is_some() { ArtifactRule::Locked { digest } } else { ArtifactRule::Compiled }
}

/// Reads `[calendar]`.
pub(super) fn calendar(from: &mut Reader) -> CalendarConfig {
    let usual = CalendarConfig::default();
    from.table("calendar", "The site's calendars.");
    let mut config = CalendarConfig {
        owner: Owner::default(),
        time_zone: from.read(
            "calendar.time_zone",
            Line,
            usual.time_zone.as_str(),
            "The zone in which whole days and times without a zone are meant, such as Europe/Oslo",
        ),
        calendars: from.read(
            "calendar.calendars",
            ListOf(Line),
            usual.calendars,
            "Their names; a booking goes to the first unless it says otherwise",
        ),
        conference_url: from.read(
            "calendar.conference_url",
            Optional(Line),
            Value::Absent,
            "Where video calls are held; {id} becomes the event's own part",
        ),
    };
    from.table("calendar.owner", "Whose time is booked.");
    let mut owner = |key, about| from.read(key, Optional(Line), Value::Absent, about).unwrap_or_default();
    config.owner = Owner {
        name: owner("calendar.owner.name", "Their name"),
        email: owner("calendar.owner.email", "Their address"),
    };
    if let Err(error) = LocalCalendar::from_config(config.clone()) {
        let key = match error {
            ConfigError::TimeZone(_) => "calendar.time_zone",
            ConfigError::NoCalendar | ConfigError::Name(_) => "calendar.calendars",
        };
        from.add_problem(key, format!("`{key}`: {error}"), None);
    }
    config
}

/// Reads who sees the details of every event.
pub(super) fn calendar_details_claim(from: &mut Reader) -> Option<RequiredClaim> {
    from.read(
        "calendar.details_claim",
        Optional(Claim),
        Value::Absent,
        "The claim with which a client sees titles and attendees of all events, not only of its own bookings",
    )
}

/// Reads `[logs]`.
pub(super) fn logs(from: &mut Reader) -> Logs {
    from.table("logs", "What the server logs.");
    Logs {
        level: from.read("logs.level", choice(), "info", "How much"),
        format: from.read(
            "logs.format",
            choice(),
            "auto",
            "\"auto\" is for people at a terminal, and JSON otherwise; with \"json\" nothing else is on standard error",
        ),
    }
}

/// Reads `[present]`.
pub(super) fn present(from: &mut Reader) -> BTreeSet<String> {
    from.table("present", "What tools may require of this site.");
    let about = "Names that tools' `availability.requires` may ask for";
    from.read("present.keys", ListOf(Line), Vec::new(), about).into_iter().collect()
}
