//! The only file that reads the environment.

#![expect(clippy::disallowed_methods, reason = "this is where the environment is read")]

use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use jiff::Timestamp;
use quarterdeck_compiler::{Stamp, Style};

use crate::config::Variables;
use crate::times;

/// When and from what commit an artifact is built.
pub(crate) fn stamp(tools: &Path) -> anyhow::Result<Stamp> {
    Ok(Stamp { timestamp: build_time()?.to_string(), commit: commit(tools) })
}

/// Now, or the time that a reproducible build asks for.
fn build_time() -> anyhow::Result<Timestamp> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Err(_) => Ok(Timestamp::from_second(times::now().as_second())?),
        Ok(text) => {
            text.trim().parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).with_context(
                || format!("SOURCE_DATE_EPOCH is {text:?}; set it to whole seconds since 1970, or unset it"),
            )
        }
    }
}

/// The commit that the tools folder is at, when it is in a repository and git is there to ask.
fn commit(tools: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(tools)
        .args(["rev-parse", "--short=8", "HEAD"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// Colours only at a terminal, unless `NO_COLOR` is set.
pub(crate) fn style_of_stderr() -> Style {
    style(stderr().is_terminal())
}

/// The same for standard output.
pub(crate) fn style_of_stdout() -> Style {
    style(stdout().is_terminal())
}

fn style(is_terminal: bool) -> Style {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_terminal && !refused { Style::Coloured } else { Style::Plain }
}

/// The operator's name by the environment: a hint for readers of the audit log, not a proof.
pub(crate) fn user() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    name("USER").or_else(|| name("LOGNAME")).unwrap_or_else(|| "unknown".into())
}

/// The name of this machine, or an empty text where it has none to tell.
pub(crate) fn host_name() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let by_file = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
    let by_variable = || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    by_file.or_else(by_variable).unwrap_or_default().trim().to_owned()
}

/// Where embedding models are kept, for every project of this user.
pub(crate) fn models_folder() -> Option<PathBuf> {
    let (cache, home) = (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    quarterdeck_embedding::cache_directory(cache.as_deref(), home.as_deref())
}

/// Where speech engines are kept, for every project of this user.
pub(crate) fn speech_folder() -> Option<PathBuf> {
    let (cache, home) = (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    quarterdeck_local_speech::cache_directory(cache.as_deref(), home.as_deref())
}

/// Where programs are looked for.
pub(crate) fn search_path() -> Option<std::ffi::OsString> {
    std::env::var_os("PATH")
}

/// A variable that a flag names.
pub(crate) fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// The variables of the configuration. A value that is not UTF-8 has replacement characters, and is refused there.
pub(crate) fn variables() -> Variables {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Variables::from_all(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
}
