//! `quarterdeck mcp add`.

use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_host_mcp::ServerName;

use super::entry::{EntryTarget, EntryValue, ServerEntry, quoted, secret_arguments, text_value};
use crate::ExitStatus;
use crate::arguments::mcp::{McpAddOptions, McpOAuthOptions};
use crate::arguments::serve::ServeOptions;
use crate::config::{self, edit};
use crate::environment;
use crate::terminal::{info, warn};

/// What launchers such as `npx` and `uvx` need to find their interpreter and their cache.
const USUAL_VARIABLES: [&str; 2] = ["PATH", "HOME"];

pub(crate) fn run(options: &McpAddOptions) -> anyhow::Result<ExitStatus> {
    let entry = entry(options)?;
    let path = config::file_of(&ServeOptions::default());
    let table = write(&path, &entry)?;
    info(&format!("added to {}:\n\n{table}", path.display()));
    info(&format!("next: quarterdeck mcp tools {0}, then quarterdeck mcp import {0}", entry.name));
    Ok(ExitStatus::Success)
}

/// Writes the table of a server that is not configured yet.
pub(super) fn write(path: &Path, entry: &ServerEntry) -> anyhow::Result<String> {
    let text = edit::read_text(path)?;
    let before = edit::check_text(path, &text)?;
    if before.mcp.contains_key(&entry.name) {
        bail!(
            "there is a server {0} in {1} already\nhelp: choose another name, or `quarterdeck mcp remove {0}` first",
            entry.name,
            path.display()
        );
    }
    let table = entry.to_toml();
    let text = edit::append_table(&text, &table);
    let after = edit::check_text(path, &text).context("the server cannot be added so")?;
    if !after.mcp.contains_key(&entry.name) {
        bail!("the server cannot be added so:\n{table}");
    }
    if let EntryTarget::Command { args, .. } = &entry.target {
        for name in secret_arguments(args) {
            warn(&format!(
                "--{name} seems to hold a secret, which now stands in {} and in the list of processes; use a variable if the \
                 server can read one",
                path.display()
            ));
        }
    }
    edit::write_text(path, &text)?;
    Ok(table)
}

fn entry(options: &McpAddOptions) -> anyhow::Result<ServerEntry> {
    let name = ServerName::parse(&options.name)?;
    let mut further = oauth(&options.oauth);
    if !options.private_hosts.is_empty() {
        let hosts: Vec<_> = options.private_hosts.iter().map(|host| quoted(&host.to_string())).collect();
        further.push(format!("private_hosts = [{}]", hosts.join(", ")));
    }
    let target = match (&options.command, &options.url) {
        (Some(command), _) => EntryTarget::Command {
            command: command.clone(),
            args: options.args.clone(),
            cwd: options.cwd.clone(),
            env: variables(&options.values.env)?,
        },
        (None, Some(url)) => {
            if !options.args.is_empty() {
                bail!("what stands after `--` are arguments of `--command`, and there is none");
            }
            EntryTarget::Url { url: url.clone(), headers: headers(options)? }
        }
        // The command line requires one of them.
        (None, None) => bail!("give `--url` or `--command`"),
    };
    Ok(ServerEntry { name, target, further })
}

/// The variables of a process: the usual ones, and those that are named.
pub(super) fn variables(given: &[String]) -> anyhow::Result<Vec<(String, EntryValue)>> {
    let mut variables = usual_variables();
    for each in given {
        let (name, value) = match each.split_once('=') {
            None => (each.as_str(), EntryValue::variable(each)),
            Some((name, value)) => {
                let way_out = format!("write `--env {name}`, and set {name} where the server runs");
                (name, text_value(name, value, &way_out)?)
            }
        };
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// Those of the usual ones that there are.
pub(super) fn usual_variables() -> Vec<(String, EntryValue)> {
    let set = environment::variables();
    let usual = USUAL_VARIABLES.into_iter().filter(|name| set.get(name).is_some());
    usual.map(|name| (name.to_owned(), EntryValue::variable(name))).collect()
}

fn headers(options: &McpAddOptions) -> anyhow::Result<Vec<(String, EntryValue)>> {
    let pair = |given: &str, form: &str| -> anyhow::Result<(String, String)> {
        let (name, value) = given.split_once('=').with_context(|| format!("{given:?} is not {form}"))?;
        Ok((name.to_ascii_lowercase(), value.to_owned()))
    };
    let mut headers = Vec::new();
    for given in &options.values.header {
        let (name, value) = pair(given, "NAME=VALUE")?;
        let way_out =
            format!("write `--header-env {name}=VARIABLE`, and set that variable where the server runs");
        headers.push((name.clone(), text_value(&name, &value, &way_out)?));
    }
    for given in &options.values.header_env {
        let (name, variable) = pair(given, "NAME=VARIABLE")?;
        headers.push((name, EntryValue::variable(&variable)));
    }
    if let Some(variable) = &options.values.bearer_env {
        let value = EntryValue::Variable { name: variable.clone(), prefix: Some("Bearer ".into()) };
        headers.push(("authorization".into(), value));
    }
    Ok(headers)
}

fn oauth(options: &McpOAuthOptions) -> Vec<String> {
    let (Some(id), Some(secret)) = (&options.oauth_client_id, &options.oauth_secret_env) else {
        return Vec::new();
    };
    let mut lines = vec![
        format!("oauth.client_id = {}", quoted(id)),
        format!("oauth.client_secret = {{ env = {} }}", quoted(secret)),
    ];
    if !options.oauth_scope.is_empty() {
        let scopes: Vec<_> = options.oauth_scope.iter().map(|scope| quoted(scope)).collect();
        lines.push(format!("oauth.scopes = [{}]", scopes.join(", ")));
    }
    lines.extend(options.oauth_token_url.iter().map(|url| format!("oauth.token_url = {}", quoted(url))));
    lines
}
