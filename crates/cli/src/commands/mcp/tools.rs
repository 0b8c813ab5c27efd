//! `quarterdeck mcp tools`.

use quarterdeck_host_mcp::{PublishedTool, ServerName};
use serde_json::{Value, json};

use super::imported::ToolsFolderContent;
use super::state::Listing;
use crate::ExitStatus;
use crate::arguments::Format;
use crate::arguments::mcp::McpToolsOptions;
use crate::config::LocalConfig;
use crate::terminal::{count, info, plain, print, titled_table};

/// How much of a description is shown in a line, in characters.
const MAX_SHOWN_CHARS: usize = 60;

pub(crate) fn run(options: &McpToolsOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let server = super::find(&config, &options.name)?;
    let content = ToolsFolderContent::read(options.tools.or(&config))?;
    let listing = super::published(server)?;
    let view = View { server: &server.name, content: &content, listing: &listing };
    match options.format {
        Format::Json => {
            let tools: Vec<_> = listing.tools.iter().map(|tool| view.to_json(tool)).collect();
            print(&format!("{:#}\n", json!({ "server": listing.server, "tools": tools })))?;
        }
        Format::Human => {
            let columns = ["tool", "digest", "here", "hints", "description"];
            print(&titled_table(&columns, listing.tools.iter().map(|tool| view.cells(tool))))?;
            let (name, version) = (plain(&listing.server.name), plain(&listing.server.version));
            info(&format!("{} of {name} {version}", count(listing.tools.len(), "tool")));
        }
    }
    Ok(ExitStatus::Success)
}

struct View<'a> {
    server: &'a ServerName,
    content: &'a ToolsFolderContent,
    listing: &'a Listing,
}

impl View<'_> {
    fn cells(&self, tool: &PublishedTool) -> Vec<String> {
        let here = match self.content.find(self.server, &tool.name) {
            None => "-".to_owned(),
            Some(imported) => format!("{} ({})", imported.id, self.listing.state_of(imported).as_str()),
        };
        let description =
            plain(tool.description.as_deref().unwrap_or_default().lines().next().unwrap_or_default());
        vec![plain(&tool.name), tool.digest().short().to_owned(), here, hints(tool), shorten(&description)]
    }

    fn to_json(&self, tool: &PublishedTool) -> Value {
        let imported = self.content.find(self.server, &tool.name);
        json!({
            "digest": tool.digest(),
            "imported": imported.map(|imported| json!({
                "toolId": imported.id,
                "state": self.listing.state_of(imported).as_str(),
            })),
            "published": tool,
        })
    }
}

/// What the server claims of its tool.
fn hints(tool: &PublishedTool) -> String {
    let hints = [
        ("readOnlyHint", true, "reads"),
        ("readOnlyHint", false, "writes"),
        ("destructiveHint", true, "destroys"),
        ("idempotentHint", true, "repeatable"),
    ];
    let said: Vec<_> = hints
        .into_iter()
        .filter(|(name, value, _)| tool.hint(name) == Some(*value))
        .map(|(_, _, word)| word)
        .collect();
    if said.is_empty() { "-".into() } else { said.join(", ") }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
