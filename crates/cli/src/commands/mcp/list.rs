//! `quarterdeck mcp list`.

use quarterdeck_host_mcp::UpstreamConfig;
use serde_json::{Value, json};

use super::imported::{ImportedTool, ToolsFolderContent};
use super::state::{ImportState, Listing};
use crate::arguments::Format;
use crate::arguments::mcp::McpListOptions;
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table, warn};
use crate::{ExitStatus, wire};

/// One server, and what came of asking it.
struct ServerRow<'a> {
    config: &'a UpstreamConfig,
    imported: Vec<&'a ImportedTool>,
    /// Nothing where it was not asked.
    asked: Option<anyhow::Result<Listing>>,
}

pub(crate) fn run(options: &McpListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let content = ToolsFolderContent::read(options.tools.or(&config))?;
    let mut asked = Vec::new();
    if !options.offline {
        // Each may take as long as its start may take, so they are asked at the same time.
        let asking = config.mcp.values().map(super::ask);
        asked = wire::block_on(futures_util::future::join_all(asking))?;
    }
    let mut asked = asked.into_iter();
    let rows: Vec<_> = config
        .mcp
        .values()
        .map(|server| ServerRow {
            config: server,
            imported: content.of_server(&server.name).collect(),
            asked: asked.next(),
        })
        .collect();
    match options.format {
        Format::Json => print(&format!(
            "{:#}\n",
            json!({ "servers": rows.iter().map(ServerRow::to_json).collect::<Vec<_>>() })
        ))?,
        Format::Human => print_rows(&rows)?,
    }
    for tool in content.imported.iter().filter(|tool| !config.mcp.contains_key(&tool.binding.server)) {
        info(&format!("{} is bound to the server {}, which is not configured", tool.id, tool.binding.server));
    }
    let is_fine = rows.iter().all(ServerRow::is_fine);
    Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Problems })
}

fn print_rows(rows: &[ServerRow<'_>]) -> anyhow::Result<()> {
    if rows.is_empty() {
        info(
            "no MCP server is configured; `quarterdeck mcp add NAME --command PROGRAM` or `--url URL` adds one",
        );
        return Ok(());
    }
    let columns = ["server", "transport", "address", "imported", "state"];
    print(&titled_table(&columns, rows.iter().map(ServerRow::cells)))?;
    for row in rows {
        let listing = match &row.asked {
            None => continue,
            Some(Err(error)) => {
                warn(&error.to_string());
                continue;
            }
            Some(Ok(listing)) => listing,
        };
        let changed = row.imported.iter().filter(|tool| listing.state_of(tool) != ImportState::Current);
        for tool in changed {
            info(&format!(
                "{} ({} of {}) is {}; `quarterdeck mcp update {}` shows the difference",
                tool.id,
                plain(&tool.binding.tool),
                row.config.name,
                listing.state_of(tool).as_str(),
                row.config.name
            ));
        }
    }
    Ok(())
}

impl ServerRow<'_> {
    fn is_fine(&self) -> bool {
        match &self.asked {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(listing)) => {
                self.imported.iter().all(|tool| listing.state_of(tool) == ImportState::Current)
            }
        }
    }

    fn cells(&self) -> Vec<String> {
        let state = match &self.asked {
            None => "not asked".to_owned(),
            Some(Err(_)) => "cannot be used".to_owned(),
            Some(Ok(listing)) => {
                format!("{} {}", plain(&listing.server.name), plain(&listing.server.version))
            }
        };
        let imported = match &self.asked {
            Some(Ok(listing)) => format!("{} of {}", self.imported.len(), listing.tools.len()),
            _ => self.imported.len().to_string(),
        };
        let config = self.config;
        vec![
            config.name.to_string(),
            config.transport.kind().into(),
            plain(&config.address()),
            imported,
            state,
        ]
    }

    fn to_json(&self) -> Value {
        let tools = self.imported.iter().map(|tool| {
            let state = match &self.asked {
                Some(Ok(listing)) => Some(listing.state_of(tool).as_str()),
                _ => None,
            };
            json!({ "toolId": tool.id, "tool": tool.binding.tool, "digest": tool.binding.digest, "state": state })
        });
        json!({
            "name": self.config.name,
            "transport": self.config.transport.kind(),
            "address": self.config.address(),
            "imported": tools.collect::<Vec<_>>(),
            "offered": match &self.asked { Some(Ok(listing)) => json!(listing.tools.len()), _ => Value::Null },
            "error": match &self.asked { Some(Err(error)) => json!(error.to_string()), _ => Value::Null },
        })
    }
}
