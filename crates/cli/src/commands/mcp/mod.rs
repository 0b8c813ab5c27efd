//! `quarterdeck mcp`: our tools for MCP clients, and tools of MCP servers elsewhere, as folders.

mod add;
mod call;
mod catalog;
mod entry;
mod import;
mod imported;
mod list;
mod relax;
mod remove;
mod serve;
mod state;
mod tools;
mod update;

use std::path::Path;

use anyhow::anyhow;
use quarterdeck_compiler::nearest;
use quarterdeck_host_mcp::{UpstreamConfig, UpstreamTransport, Visit};

use crate::ExitStatus;
use crate::arguments::mcp::McpCommand;
use crate::config::{LocalConfig, MCP_TABLE, McpServers};
use crate::terminal::{plain, warn};
use crate::wire;

use imported::ToolsFolderContent;
use state::Listing;

pub(crate) fn run(command: &McpCommand) -> anyhow::Result<ExitStatus> {
    match command {
        McpCommand::Serve(options) => serve::run(options),
        McpCommand::Add(options) => add::run(options),
        McpCommand::Remove(options) => remove::run(options),
        McpCommand::List(options) => list::run(options),
        McpCommand::Tools(options) => tools::run(options),
        McpCommand::Import(options) => import::run(options),
        McpCommand::Update(options) => update::run(options),
        McpCommand::Call(options) => call::run(options),
    }
}

/// Warns of imported tools whose server is not configured here.
pub(crate) fn warn_about_servers(tools: &Path, servers: &McpServers) -> anyhow::Result<()> {
    let content = ToolsFolderContent::read(tools)?;
    for tool in content.imported.iter().filter(|tool| !servers.contains_key(&tool.binding.server)) {
        warn(&format!(
            "{} is unavailable: its server {} has no table [{MCP_TABLE}.{}]; add it with `quarterdeck mcp add`",
            tool.id, tool.binding.server, tool.binding.server
        ));
    }
    Ok(())
}

/// A configured server by its name.
fn find<'a>(config: &'a LocalConfig, name: &str) -> anyhow::Result<&'a UpstreamConfig> {
    find_in(&config.mcp, name)
}

fn find_in<'a>(servers: &'a McpServers, name: &str) -> anyhow::Result<&'a UpstreamConfig> {
    let found = servers.iter().find(|(known, _)| known.as_str() == name).map(|(_, server)| server);
    found.ok_or_else(|| {
        let hint = nearest(name, servers.keys().map(|name| name.as_str())).map_or_else(
            || {
                "add it with `quarterdeck mcp add`; `quarterdeck mcp list` shows those that there are"
                    .to_owned()
            },
            |near| format!("did you mean {near}?"),
        );
        anyhow!("there is no server {name:?} in the configuration; {hint}")
    })
}

/// Connects to a server, asks what it publishes, and ends the connection.
fn published(config: &UpstreamConfig) -> anyhow::Result<Listing> {
    wire::block_on(ask(config))?
}

async fn ask(config: &UpstreamConfig) -> anyhow::Result<Listing> {
    let visit = visit(config).await?;
    let listing = Listing { server: visit.server().clone(), tools: visit.tools() };
    visit.close().await;
    Ok(listing)
}

async fn visit(config: &UpstreamConfig) -> anyhow::Result<Visit> {
    let opened = Visit::open(config.clone()).await;
    opened.map_err(|error| {
        let way_out = match &config.transport {
            UpstreamTransport::Stdio(_) => {
                "run its command by hand to see what it says; it has no variables but those of `env`"
            }
            UpstreamTransport::Http(_) => {
                "check `url`, `headers` and, for an address that is not public, `private_hosts`"
            }
        };
        let (name, address) = (&config.name, plain(&config.address()));
        anyhow!("{name} ({address}) cannot be used: {error}\nhelp: {way_out} in [{MCP_TABLE}.{name}]")
    })
}
