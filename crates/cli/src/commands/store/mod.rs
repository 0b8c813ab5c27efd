//! `quarterdeck store`: what tools have stored, and the care of the store itself.

mod check;
mod copy;
mod migrate;
mod vacuum;
mod verification;

use std::path::Path;

use anyhow::bail;
use quarterdeck_contracts::{Artifact, Store};
use quarterdeck_runtime::{StoredValue, ValueFilter, find_session, find_value, list_values};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::{StoreCommand, StoreGetOptions, StoreListOptions};
use crate::commands::diff::load_artifact;
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table};
use crate::{ExitStatus, previous_registry, wire};

const COLUMNS: [&str; 4] = ["client", "tool", "key", "value"];
/// Longer values are shortened in a table.
const MAX_CELL_CHARS: usize = 80;

pub(crate) fn run(command: &StoreCommand) -> anyhow::Result<ExitStatus> {
    match command {
        StoreCommand::List(options) => wire::block_on(list(options))?,
        StoreCommand::Get(options) => wire::block_on(get(options))?,
        StoreCommand::Migrate(options) => wire::block_on(migrate::migrate(options))?,
        StoreCommand::Copy(options) => wire::block_on(copy::copy(options))?,
        StoreCommand::Check(options) => wire::block_on(check::check(options))?,
        StoreCommand::Vacuum(options) => wire::block_on(vacuum::vacuum(options))?,
    }
}

async fn list(options: &StoreListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let store = wire::find_store(&node).await?;
    let client = match &options.session {
        Some(session) => Some(client_of(&*store, session).await?),
        None => options.client.clone(),
    };
    let filter = ValueFilter { client: client.as_deref(), tool: options.tool.as_deref() };
    let mut found = list_values(&*store, filter, options.limit).await?;
    let definitions = Definitions::load(&config.folders.tools, &node.folder);
    found.values.iter_mut().for_each(|value| definitions.redact(value));
    let json = json!({ "values": found.values, "truncated": found.is_truncated });
    match options.format() {
        Format::Json => print(&format!("{json:#}\n"))?,
        Format::Human if found.values.is_empty() => info("there are no such values"),
        Format::Human => print(&titled_table(&COLUMNS, found.values.iter().map(row)))?,
    }
    if found.is_truncated && options.format() == Format::Human {
        info(&format!("only the first {} are shown; `--limit` shows more, a filter fewer", options.limit));
    }
    Ok(ExitStatus::Success)
}

async fn get(options: &StoreGetOptions) -> anyhow::Result<ExitStatus> {
    let StoreGetOptions { client, tool, key, data, .. } = options;
    let config = LocalConfig::load()?;
    let node = data.node(&config);
    let store = wire::find_store(&node).await?;
    let Some(mut value) = find_value(&*store, client, tool, key).await? else {
        info(&format!(
            "{tool} has stored nothing under {} for {client}; `quarterdeck store list` shows what there is",
            plain(key)
        ));
        return Ok(ExitStatus::Problems);
    };
    Definitions::load(&config.folders.tools, &node.folder).redact(&mut value);
    match options.json {
        true => print(&format!("{:#}\n", json!(value)))?,
        false => print(&format!("{:#}\n", value.value))?,
    }
    Ok(ExitStatus::Success)
}

/// Values belong to a client, whatever the session.
async fn client_of(store: &dyn Store, session: &str) -> anyhow::Result<String> {
    match find_session(store, session).await? {
        Some(found) => Ok(found.client_id),
        None => bail!("there is no session {session}; `quarterdeck sessions` lists them"),
    }
}

fn row(value: &StoredValue) -> Vec<String> {
    let text = value.value.to_string();
    let mut shown: String = text.chars().take(MAX_CELL_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    vec![plain(&value.client_id), plain(&value.tool_id), plain(&value.key), plain(&shown)]
}

/// What is known of the tools: as they were served last, and as they lie in the folder.
struct Definitions(Vec<Artifact>);

impl Definitions {
    fn load(tools: &Path, data: &Path) -> Self {
        let in_folder = load_artifact(&tools.join("tool_registry.json")).ok();
        Self(previous_registry::load(data).into_iter().chain(in_folder).collect())
    }

    /// Hides what is sensitive by any of the definitions.
    fn redact(&self, value: &mut StoredValue) {
        let tools = self.0.iter().flat_map(|artifact| &artifact.tools);
        let id = value.tool_id.clone();
        let mut of_tool = tools.filter(|tool| tool.metadata.tool_id.as_str() == id).peekable();
        if of_tool.peek().is_none() {
            value.redact(None);
        }
        for tool in of_tool {
            value.redact(Some((&tool.metadata, &tool.json_schema)));
        }
    }
}
