//! The folders of a tools folder that are bound to tools of MCP servers.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use quarterdeck_contracts::ToolId;
use quarterdeck_host_mcp::{
    BINDING_FILE, Binding, PUBLISHED_FILE, PublishedTool, ServerName, parse_published,
};

use crate::terminal::warn;

/// As the compiler limits the files of a tool folder.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// One folder.
#[derive(Debug, Clone)]
pub(super) struct ImportedTool {
    pub(super) id: ToolId,
    pub(super) folder: PathBuf,
    pub(super) binding: Binding,
    /// What the server published then. A folder that was written by hand has none.
    pub(super) published: Option<PublishedTool>,
}

/// Everything in a tools folder that an import must know.
#[derive(Debug, Default)]
pub(super) struct ToolsFolderContent {
    pub(super) imported: Vec<ImportedTool>,
    /// The ids of all folders in lower case: some file systems know no capitals.
    taken: BTreeSet<String>,
}

impl ToolsFolderContent {
    /// Reads the folder, which need not exist. A binding that cannot be read is warned of.
    pub(super) fn read(tools: &Path) -> anyhow::Result<Self> {
        let mut content = Self::default();
        let entries = match fs::read_dir(tools) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(content),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", tools.display())),
        };
        for entry in entries {
            let folder = entry?.path();
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Ok(id) = ToolId::from_folder(name) else { continue };
            if name.starts_with('_') || !folder.is_dir() {
                continue;
            }
            content.taken.insert(id.as_str().to_ascii_lowercase());
            if folder.join(BINDING_FILE).is_file() {
                match read_imported(id, &folder) {
                    Ok(tool) => content.imported.push(tool),
                    Err(error) => warn(&format!("{error:#}; `quarterdeck check` shows it")),
                }
            }
        }
        content.imported.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(content)
    }

    pub(super) fn is_taken(&self, id: &str) -> bool {
        self.taken.contains(&id.to_ascii_lowercase())
    }

    pub(super) fn take(&mut self, id: &ToolId) {
        self.taken.insert(id.as_str().to_ascii_lowercase());
    }

    pub(super) fn of_server<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a ImportedTool> {
        self.imported.iter().filter(move |tool| tool.binding.server == *server)
    }

    pub(super) fn find(&self, server: &ServerName, tool: &str) -> Option<&ImportedTool> {
        self.imported.iter().find(|each| each.binding.server == *server && each.binding.tool == tool)
    }
}

fn read_imported(id: ToolId, folder: &Path) -> anyhow::Result<ImportedTool> {
    let path = folder.join(BINDING_FILE);
    let binding = Binding::parse(&read(&path)?).with_context(|| path.display().to_string())?;
    let path = folder.join(PUBLISHED_FILE);
    let published = match path.is_file() {
        true => Some(parse_published(&read(&path)?).with_context(|| path.display().to_string())?),
        false => None,
    };
    Ok(ImportedTool { id, folder: folder.to_owned(), binding, published })
}

/// A file of a tool folder.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = fs::File::open(path).with_context(cannot)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).with_context(cannot)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        anyhow::bail!("{} is larger than 1 MiB", path.display());
    }
    Ok(text)
}
