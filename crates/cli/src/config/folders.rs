//! The folders, the log, and the keys that tools may require.

use std::collections::BTreeSet;
use std::path::PathBuf;

use quarterdeck_runtime::{AllowedDigests, VersionSettings};
use tracing::level_filters::LevelFilter;

use super::kinds::{boolean, choice, choices, folder, line, list, sha256, whole};
use super::reader::{Reader, settings};

/// Where things are.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) tools: PathBuf,
    pub(crate) kb: PathBuf,
    /// Of a knowledge base in a database: beyond it, vectors are compared there.
    pub(crate) max_passages_in_memory: usize,
    pub(crate) data: PathBuf,
    /// The agents' instructions; `None` for the built-in ones.
    pub(crate) prompts: Option<PathBuf>,
    pub(crate) artifact: ArtifactRule,
    /// What operators may load beside it while the server runs.
    pub(crate) allowed: AllowedDigests,
}

/// Which artifact of the tools folder a server may load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArtifactRule {
    /// The result of compiling the folder.
    Compiled,
    /// The artifact in the folder. Nothing is compiled.
    Locked {
        /// The required content hash: 64 hexadecimal digits in lower case.
        digest: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logs {
    pub(crate) level: LevelFilter,
    pub(crate) format: LogFormat,
}

choices! { for LevelFilter { ERROR = "error", WARN = "warn", INFO = "info", DEBUG = "debug", TRACE = "trace", } }
choices! {
    enum LogFormat {
        /// Text at a terminal, else JSON.
        Auto = "auto",
        Human = "human",
        Json = "json",
    }
}

pub(super) fn folders(from: &mut Reader) -> Folders {
    let mut folders = Folders {
        tools: "tools".into(),
        kb: "kb".into(),
        max_passages_in_memory: 500_000,
        data: ".quarterdeck".into(),
        prompts: None,
        artifact: ArtifactRule::Compiled,
        allowed: AllowedDigests::Any,
    };
    let mut is_locked = false;
    from.table("tools", "The tools.");
    settings! { from;
        "folder": folder() => folders.tools, "The folder that holds the tool folders";
        "locked": boolean() => is_locked,
            "Serve the artifact in the tools folder and refuse anything else; nothing is compiled";
    }
    let about =
        "The digest that the artifact must have, as `quarterdeck build` prints it; implies `tools.locked`";
    let digest = from.optional("artifact_digest", sha256(), about);
    let mut listed = Vec::new();
    settings! { from;
        "allowed_digests": list(sha256()) => listed,
            "The digests that `quarterdeck registry activate` may load; a locked server loads no others, any other server all when there are none";
    }
    let is_locked = is_locked || digest.is_some();
    if is_locked || !listed.is_empty() {
        folders.allowed = AllowedDigests::Listed(listed.into_iter().chain(digest.clone()).collect());
    }
    if is_locked {
        folders.artifact = ArtifactRule::Locked { digest };
    }
    from.table("kb", "The knowledge base.");
    settings! { from;
        "folder": folder() => folders.kb, "The folder that holds the records";
        "max_passages_in_memory": whole(0, 10_000_000) => folders.max_passages_in_memory,
            "Where `store.url` is a database: up to so many passages a node keeps every vector in memory, about 0.5 KB each; beyond, the database compares them and needs pgvector";
    }
    from.table("data", "What the server stores.");
    settings! { from;
        "folder": folder() => folders.data, "The folder of the store, the audit trail and other state";
    }
    folders.prompts = prompts(from);
    folders
}

fn prompts(from: &mut Reader) -> Option<PathBuf> {
    let mut prompts = PathBuf::from("prompts");
    from.table("prompts", "The agents' instructions.");
    settings! { from;
        "folder": folder() => prompts, "The folder that holds them; the built-in ones are used when it does not exist";
    }
    if prompts.is_dir() {
        return Some(prompts);
    }
    if from.is_set("prompts.folder") {
        let message = format!("`prompts.folder` is {prompts:?}, and there is no such folder");
        let help = "leave the key out to use the built-in instructions";
        from.add_serve_problem("prompts.folder", message, Some(help.into()));
    }
    None
}

/// Reads `[versions]`: the limits, and the claim that names a client's organisation.
pub(super) fn versions(from: &mut Reader, organisation_claim: &mut String) -> VersionSettings {
    let mut versions = VersionSettings::default();
    from.table("versions", "Versions of the registry that are loaded at the same time.");
    settings! { from;
        "max_loaded": whole(1, 64) => versions.max_loaded,
            "How many are loaded at the most, those that wait for their last session included";
        "max_stored": whole(0, 1_000) => versions.max_stored,
            "How many are kept in the data folder in addition, so that they can be activated by their digest";
        "organisation_claim": line() => *organisation_claim,
            "The claim of a verified token that names a client's organisation";
    }
    versions
}

pub(super) fn logs(from: &mut Reader) -> Logs {
    let mut logs = Logs { level: LevelFilter::INFO, format: LogFormat::Auto };
    from.table("logs", "What the server logs.");
    settings! { from;
        "level": choice() => logs.level, "How much";
        "format": choice() => logs.format,
            "\"auto\" is text at a terminal, and JSON otherwise; with \"json\" nothing else is on standard error";
    }
    logs
}

/// Reads `[present]`: the keys that tools may require.
pub(super) fn config_keys(from: &mut Reader) -> BTreeSet<String> {
    let mut keys = Vec::new();
    from.table("present", "What tools may require of this configuration.");
    settings! { from;
        "keys": list(line()) => keys, "Names that tools' `availability.requires` may ask for";
    }
    keys.into_iter().collect()
}
