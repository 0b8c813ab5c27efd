//! The table of a server, as it is written into the configuration file.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;
use quarterdeck_host_mcp::ServerName;
use serde_json::json;

use crate::config::{MCP_TABLE, sounds_secret};

/// One value of `env` or `headers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryValue {
    /// Written as it is.
    Text(String),
    /// The variable that holds it where the server runs.
    Variable { name: String, prefix: Option<String> },
}

impl EntryValue {
    pub(super) fn variable(name: &str) -> Self {
        Self::Variable { name: name.to_owned(), prefix: None }
    }

    fn to_toml(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Variable { name, prefix: None } => format!("{{ env = {} }}", quoted(name)),
            Self::Variable { name, prefix: Some(prefix) } => {
                format!("{{ env = {}, prefix = {} }}", quoted(name), quoted(prefix))
            }
        }
    }
}

/// A server that is not configured yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerEntry {
    pub(super) name: ServerName,
    pub(super) target: EntryTarget,
    /// Lines of their own: keys of `oauth`, `private_hosts`, `elicitation`.
    pub(super) further: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryTarget {
    Command { command: String, args: Vec<String>, cwd: Option<PathBuf>, env: Vec<(String, EntryValue)> },
    Url { url: String, headers: Vec<(String, EntryValue)> },
}

impl ServerEntry {
    pub(super) fn to_toml(&self) -> String {
        let mut text = format!("[{MCP_TABLE}.{}]\n", self.name);
        let mut line = |key: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = {value}");
        };
        match &self.target {
            EntryTarget::Command { command, args, cwd, env } => {
                line("command", quoted(command));
                if !args.is_empty() {
                    let args: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
                    line("args", format!("[{}]", args.join(", ")));
                }
                if let Some(cwd) = cwd {
                    line("cwd", quoted(&cwd.display().to_string()));
                }
                env.iter().for_each(|(name, value)| line(&format!("env.{}", key(name)), value.to_toml()));
            }
            EntryTarget::Url { url, headers } => {
                line("url", quoted(url));
                headers
                    .iter()
                    .for_each(|(name, value)| line(&format!("headers.{}", key(name)), value.to_toml()));
            }
        }
        for line in &self.further {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

/// A value that an operator writes out. One that is a secret by its name is not taken.
pub(super) fn text_value(name: &str, value: &str, way_out: &str) -> anyhow::Result<EntryValue> {
    if sounds_secret(name) {
        bail!(
            "{name} is a secret by its name, and secrets do not belong in the configuration file\nhelp: {way_out}"
        );
    }
    Ok(EntryValue::Text(value.to_owned()))
}

/// The options among a program's arguments that seem to be given a secret.
pub(super) fn secret_arguments(args: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for (nth, arg) in args.iter().enumerate() {
        let Some(name) = arg.strip_prefix("--") else { continue };
        let (name, has_value) = match name.split_once('=') {
            Some((name, value)) => (name, !value.is_empty()),
            None => (name, args.get(nth + 1).is_some_and(|next| !next.starts_with('-'))),
        };
        if has_value && sounds_secret(name) {
            found.push(name);
        }
    }
    found
}

/// A TOML string. JSON's escapes are among TOML's.
pub(super) fn quoted(text: &str) -> String {
    json!(text).to_string().replace('\u{7f}', "\\u007f")
}

fn key(name: &str) -> String {
    let is_bare =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_bare { name.to_owned() } else { quoted(name) }
}
