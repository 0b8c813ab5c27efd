//! A catalog: several servers in one file, in the form in which desktop clients keep theirs.
//!
//! `{ "mcpServers": { "NAME": { "command", "args", "env", "cwd" } | { "url", "headers" } } }`, each with `tools`, a list of
//! names, where not all of them are wanted. Secrets in it are not copied: their variable is named in the configuration.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use quarterdeck_contracts::parse_json;
use quarterdeck_host_mcp::ServerName;
use serde_json::{Map, Value};

use super::add;
use super::entry::{EntryTarget, EntryValue, ServerEntry};
use crate::arguments::serve::ServeOptions;
use crate::config::{self, LocalConfig, McpServers, edit};
use crate::terminal::{info, plain};

const MAX_BYTES: u64 = 1 << 20;
const MAX_SERVERS: usize = 100;
/// The members that hold the servers: of most clients, and of one editor.
const ROOTS: [&str; 2] = ["mcpServers", "servers"];

pub(super) struct Catalog {
    entries: Vec<ServerEntry>,
    /// Which tools are wanted of each server; none means all.
    pub(super) tools: Vec<(ServerName, Vec<String>)>,
    /// What is not as it stands in the file.
    notes: Vec<String>,
}

impl Catalog {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        let cannot = || format!("cannot read {}", path.display());
        fs::File::open(path)
            .with_context(cannot)?
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .with_context(cannot)?;
        if text.len() as u64 > MAX_BYTES {
            bail!("{} is larger than 1 MiB", path.display());
        }
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let root = parse_json(text)?;
        let servers = ROOTS.iter().find_map(|name| root.get(name)?.as_object());
        let Some(servers) = servers else {
            bail!("no catalog: it is a JSON object with `mcpServers`, an object of servers by name");
        };
        if servers.len() > MAX_SERVERS {
            bail!("it has {} servers, and at most {MAX_SERVERS} are taken", servers.len());
        }
        let mut catalog = Self { entries: Vec::new(), tools: Vec::new(), notes: Vec::new() };
        for (name, server) in servers {
            catalog.add(name, server).with_context(|| format!("the server {:?}", plain(name)))?;
        }
        Ok(catalog)
    }

    fn add(&mut self, written: &str, server: &Value) -> anyhow::Result<()> {
        let name = server_name(written)?;
        if name.as_str() != written {
            self.notes.push(format!("{:?} is called {name} here", plain(written)));
        }
        if self.tools.iter().any(|(known, _)| *known == name) {
            bail!("another server is called {name} too; rename one of them");
        }
        let fields = server.as_object().context("is not an object with `command` or `url`")?;
        let target = self.target(&name, fields)?;
        let tools = texts(fields, "tools")?;
        self.entries.push(ServerEntry { name: name.clone(), target, further: Vec::new() });
        self.tools.push((name, tools));
        Ok(())
    }

    fn target(&mut self, name: &ServerName, fields: &Map<String, Value>) -> anyhow::Result<EntryTarget> {
        match (fields.get("command"), fields.get("url").or_else(|| fields.get("serverUrl"))) {
            (Some(Value::String(command)), None) => {
                let mut env = add::usual_variables();
                for (variable, value) in self.values(name, fields, "env")? {
                    env.retain(|(known, _)| *known != variable);
                    env.push((variable, value));
                }
                let cwd = fields.get("cwd").and_then(Value::as_str).map(PathBuf::from);
                Ok(EntryTarget::Command { command: command.clone(), args: texts(fields, "args")?, cwd, env })
            }
            (None, Some(Value::String(url))) => {
                if fields.get("type").is_some_and(|kind| kind == "sse") {
                    bail!(
                        "speaks the older HTTP+SSE transport, which is not spoken here; use its streamable HTTP address"
                    );
                }
                let headers = self.values(name, fields, "headers")?;
                Ok(EntryTarget::Url { url: url.clone(), headers })
            }
            _ => bail!("has neither a `command` nor a `url`, or both"),
        }
    }

    fn values(
        &mut self,
        server: &ServerName,
        fields: &Map<String, Value>,
        table: &str,
    ) -> anyhow::Result<Vec<(String, EntryValue)>> {
        let Some(values) = fields.get(table) else { return Ok(Vec::new()) };
        let values = values.as_object().with_context(|| format!("`{table}` is not an object"))?;
        let mut entries = Vec::new();
        for (name, value) in values {
            let text = value.as_str().with_context(|| format!("`{table}.{}` is not a text", plain(name)))?;
            let entry = match reference(text) {
                Some(entry) => entry,
                // No name tells for sure that its value is no secret, and the file is for version control.
                None => self.not_copied(server, table, name, text),
            };
            let name = if table == "headers" { name.to_ascii_lowercase() } else { name.clone() };
            entries.push((name, entry));
        }
        Ok(entries)
    }

    /// The variable that the operator is to set, in the place of a value.
    fn not_copied(&mut self, server: &ServerName, table: &str, name: &str, text: &str) -> EntryValue {
        let variable = match table {
            "env" => name.to_owned(),
            _ => format!("{server}_{name}")
                .to_ascii_uppercase()
                .replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
        };
        let prefix = text.starts_with("Bearer ").then(|| "Bearer ".to_owned());
        self.notes.push(format!(
            "{server}: the value of {name} was not copied; set {variable} where the server runs and these commands are used"
        ));
        EntryValue::Variable { name: variable, prefix }
    }

    /// Adds those that are not configured. Answers with all servers, those that a dry run would add included.
    pub(super) fn configure(&self, is_dry_run: bool) -> anyhow::Result<McpServers> {
        let path = config::file_of(&ServeOptions::default());
        let known = LocalConfig::load()?.mcp;
        let mut text = edit::read_text(&path)?;
        for entry in &self.entries {
            if known.contains_key(&entry.name) {
                info(&format!("{} is configured already, and was left as it is", entry.name));
                continue;
            }
            let verb = if is_dry_run { "would be added to" } else { "is added to" };
            info(&format!("{} {verb} {}", entry.name, path.display()));
            if is_dry_run {
                text = edit::append_table(&text, &entry.to_toml());
            } else {
                add::write(&path, entry)?;
            }
        }
        self.notes.iter().for_each(|note| info(&format!("  {note}")));
        Ok(if is_dry_run { edit::check_text(&path, &text)?.mcp } else { LocalConfig::load()?.mcp })
    }
}

/// A name in the form that we take: `Chrome DevTools` is `chrome-devtools`.
fn server_name(written: &str) -> anyhow::Result<ServerName> {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = written.trim().to_ascii_lowercase().chars().map(plain).collect();
    Ok(ServerName::parse(name.trim_matches('-'))?)
}

/// `${NAME}` or `${env:NAME}`, perhaps with something before it.
fn reference(text: &str) -> Option<EntryValue> {
    let (prefix, rest) = text.split_once("${")?;
    let name = rest.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
    is_name.then(|| EntryValue::Variable { name: name.to_owned(), prefix })
}

fn texts(fields: &Map<String, Value>, name: &str) -> anyhow::Result<Vec<String>> {
    let Some(items) = fields.get(name) else { return Ok(Vec::new()) };
    let items = items.as_array().with_context(|| format!("`{name}` is not a list"))?;
    let text = |item: &Value| {
        item.as_str().map(str::to_owned).with_context(|| format!("`{name}` is not a list of texts"))
    };
    items.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_file_of_a_desktop_client_is_a_catalog_and_its_secrets_are_not_copied() {
        let text = r#"{ "mcpServers": {
            "Chrome DevTools": { "command": "npx", "args": ["-y", "chrome-devtools-mcp"] },
            "github": { "command": "gh-mcp", "env": { "GITHUB_TOKEN": "ghp_hunter2", "MODE": "ro", "ORG": "${env:GH_ORG}" },
                        "tools": ["list_issues"], "disabled": false },
            "crm": { "type": "http", "url": "https://crm.example/mcp",
                     "headers": { "Authorization": "Bearer hunter2", "X-Api-Key": "${CRM_KEY}", "X-Team": "a" } }
        } }"#;
        let catalog = Catalog::parse(text).unwrap();
        let mut tables: Vec<String> = catalog.entries.iter().map(ServerEntry::to_toml).collect();
        // Which of the usual variables there are is the machine's business.
        tables.iter_mut().for_each(|table| {
            *table = table
                .replace("env.PATH = { env = \"PATH\" }\n", "")
                .replace("env.HOME = { env = \"HOME\" }\n", "");
        });
        expect![[r#"
            [mcp.servers.chrome-devtools]
            command = "npx"
            args = ["-y", "chrome-devtools-mcp"]

            [mcp.servers.github]
            command = "gh-mcp"
            env.GITHUB_TOKEN = { env = "GITHUB_TOKEN" }
            env.MODE = { env = "MODE" }
            env.ORG = { env = "GH_ORG" }

            [mcp.servers.crm]
            url = "https://crm.example/mcp"
            headers.authorization = { env = "CRM_AUTHORIZATION", prefix = "Bearer " }
            headers.x-api-key = { env = "CRM_KEY" }
            headers.x-team = { env = "CRM_X_TEAM" }
        "#]]
        .assert_eq(&tables.join("\n"));
        expect![[r#"
            "Chrome DevTools" is called chrome-devtools here
            github: the value of GITHUB_TOKEN was not copied; set GITHUB_TOKEN where the server runs and these commands are used
            github: the value of MODE was not copied; set MODE where the server runs and these commands are used
            crm: the value of Authorization was not copied; set CRM_AUTHORIZATION where the server runs and these commands are used
            crm: the value of X-Team was not copied; set CRM_X_TEAM where the server runs and these commands are used"#]]
        .assert_eq(&catalog.notes.join("\n"));
        assert_eq!(catalog.tools[1].1, ["list_issues"]);
    }

    #[test]
    fn what_is_no_catalog_is_refused_with_the_reason() {
        for (text, reason) in [
            ("{", "EOF while parsing"),
            ("{}", "no catalog"),
            (r#"{ "mcpServers": { "a": {} } }"#, "neither a `command` nor a `url`"),
            (
                r#"{ "mcpServers": { "a": { "command": "x", "url": "y" } } }"#,
                "neither a `command` nor a `url`, or both",
            ),
            (r#"{ "mcpServers": { "a": { "url": "https://x", "type": "sse" } } }"#, "older HTTP+SSE"),
            (
                r#"{ "mcpServers": { "A b": { "command": "x" }, "a-b": { "command": "x" } } }"#,
                "called a-b too",
            ),
            (r#"{ "mcpServers": { "7": { "command": "x" } } }"#, "begins with a letter"),
            (r#"{ "mcpServers": { "a": { "command": "x", "args": "y" } } }"#, "`args` is not a list"),
        ] {
            let error = format!("{:#}", Catalog::parse(text).map(|_| ()).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
