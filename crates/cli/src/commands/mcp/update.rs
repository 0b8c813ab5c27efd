//! `quarterdeck mcp update`.

use std::fs;

use anyhow::{Context, bail};
use quarterdeck_compiler::Style;
use quarterdeck_host_mcp::{Import, PublishedTool, ToolFolder, UpstreamConfig, difference, update_folder};

use super::imported::{ImportedTool, ToolsFolderContent, read};
use super::relax::relax;
use super::state::{ImportState, Listing};
use crate::arguments::mcp::McpUpdateOptions;
use crate::config::LocalConfig;
use crate::terminal::{count, info, paint, plain, print, warn};
use crate::{ExitStatus, environment};

pub(crate) fn run(options: &McpUpdateOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let server = super::find(&config, &options.name)?;
    let content = ToolsFolderContent::read(options.tools.or(&config))?;
    let imported = wanted(&content, server, &options.only)?;
    let listing = super::published(server)?;
    let (mut changed, mut failed) = (0, 0);
    for tool in imported {
        match listing.state_of(tool) {
            ImportState::Current => {}
            ImportState::Missing => {
                warn(&format!(
                    "{} does not publish {} any more; delete {}",
                    server.name,
                    plain(&tool.binding.tool),
                    tool.folder.display()
                ));
                failed += 1;
            }
            ImportState::Changed => {
                changed += 1;
                let now = listing.find(&tool.binding.tool).context("a changed tool is published")?;
                show(tool, now)?;
                if options.accept && !accept(server, tool, now)? {
                    failed += 1;
                }
            }
        }
    }
    report_new(server, &content, &listing);
    if changed == 0 && failed == 0 {
        info(&format!("every imported tool of {} is published as it was imported", server.name));
    } else if changed > 0 && !options.accept {
        info(&format!(
            "{} changed and unavailable; `quarterdeck mcp update {} --accept` takes over what is shown here",
            count(changed, "tool"),
            server.name
        ));
    }
    let is_done = failed == 0 && (changed == 0 || options.accept);
    Ok(if is_done { ExitStatus::Success } else { ExitStatus::Problems })
}

fn wanted<'a>(
    content: &'a ToolsFolderContent,
    server: &'a UpstreamConfig,
    only: &[String],
) -> anyhow::Result<Vec<&'a ImportedTool>> {
    if let Some(unknown) = only.iter().find(|name| content.find(&server.name, name).is_none()) {
        bail!("{unknown:?} of {0} is not imported; `quarterdeck mcp tools {0}` lists what is", server.name);
    }
    let is_wanted = |tool: &&ImportedTool| only.is_empty() || only.contains(&tool.binding.tool);
    Ok(content.of_server(&server.name).filter(is_wanted).collect())
}

/// Prints what has changed.
fn show(tool: &ImportedTool, now: &PublishedTool) -> anyhow::Result<()> {
    let style = environment::style_of_stdout();
    let title = format!("{}: {} → {}", tool.id, tool.binding.digest.short(), now.digest().short());
    let changes = match &tool.published {
        Some(before) => difference(before, now).unwrap_or_default(),
        None => "what was imported is not known: there is no published.json in the folder\n".into(),
    };
    let lines: String = changes.lines().map(|line| format!("{}\n", coloured(line, style))).collect();
    print(&format!("{}\n{lines}\n", paint(&title, "1", style)))?;
    Ok(())
}

fn coloured(line: &str, style: Style) -> String {
    match line.chars().next() {
        Some('+') => paint(line, "32", style),
        Some('-') => paint(line, "31", style),
        _ => line.to_owned(),
    }
}

/// Writes the new pin and the published parts. `false` if the tool as it is now cannot be taken, which is said.
fn accept(server: &UpstreamConfig, tool: &ImportedTool, now: &PublishedTool) -> anyhow::Result<bool> {
    let file = |name: &str| tool.folder.join(name);
    let editor_schema = editor_schema(&read(&file("schema.json"))?);
    let import =
        Import { server: &server.name, tool: now, id: &tool.id, editor_schema: editor_schema.as_deref() };
    let guide = read(&file("guide.md")).unwrap_or_default();
    let update = match update_folder(&import, tool.published.as_ref(), (&read(&file("schema.json"))?, &guide))
    {
        Ok(update) => update,
        Err(error) => {
            warn(&format!("{} is left as it was: {error}", tool.folder.display()));
            return Ok(false);
        }
    };
    let name = import.id.as_str().to_owned();
    let update = relax(ToolFolder { id: tool.id.clone(), name, files: update.files, notes: update.notes });
    for (name, text) in &update.files {
        fs::write(file(name), text).with_context(|| format!("cannot write {}", file(name).display()))?;
        info(&format!("wrote {}", file(name).display()));
    }
    update.notes.iter().for_each(|note| info(&format!("  {note}")));
    Ok(true)
}

/// What the file says of its own schema is not the server's business.
fn editor_schema(schema: &str) -> Option<String> {
    let schema: serde_json::Value = serde_json::from_str(schema).ok()?;
    schema.get("$schema")?.as_str().map(str::to_owned)
}

/// Tools that a server has added add nothing here.
fn report_new(server: &UpstreamConfig, content: &ToolsFolderContent, listing: &Listing) {
    let new = listing.tools.iter().filter(|tool| content.find(&server.name, &tool.name).is_none());
    let new: Vec<_> = new.map(|tool| plain(&tool.name)).collect();
    if !new.is_empty() {
        info(&format!("not imported: {}", new.join(", ")));
    }
}
