//! `quarterdeck mcp remove`.

use std::fs;

use anyhow::{Context, bail};
use quarterdeck_host_mcp::ServerName;

use super::imported::ToolsFolderContent;
use crate::ExitStatus;
use crate::arguments::mcp::McpRemoveOptions;
use crate::arguments::serve::ServeOptions;
use crate::config::{self, LocalConfig, edit};
use crate::terminal::{count, info};

pub(crate) fn run(options: &McpRemoveOptions) -> anyhow::Result<ExitStatus> {
    let name = ServerName::parse(&options.name)?;
    let config = LocalConfig::load()?;
    let path = config::file_of(&ServeOptions::default());
    let text = edit::read_text(&path)?;
    let Some(text) = edit::remove_server(&path, &text, name.as_str())? else {
        bail!("there is no server {name} in {}; `quarterdeck mcp list` shows them", path.display());
    };
    let content = ToolsFolderContent::read(options.tools.or(&config))?;
    let folders: Vec<_> = content.of_server(&name).map(|tool| tool.folder.clone()).collect();
    edit::write_text(&path, &text)?;
    info(&format!("removed {name} from {}", path.display()));
    for folder in &folders {
        if options.folders {
            fs::remove_dir_all(folder).with_context(|| format!("cannot delete {}", folder.display()))?;
        }
        info(&format!("  {} {}", if options.folders { "deleted" } else { "left" }, folder.display()));
    }
    if !options.folders && !folders.is_empty() {
        info(&format!(
            "{} of its tools left, which are unavailable now; delete what is no longer wanted",
            count(folders.len(), "folder")
        ));
    }
    Ok(ExitStatus::Success)
}
