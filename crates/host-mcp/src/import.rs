//! A tool folder from what a server publishes. Nothing here connects or writes: texts in, texts out.
//!
//! What a server publishes is data. It is quoted where it can be read as Markdown, what cannot be seen in it is made visible,
//! and where that would change a meaning the tool is refused. Its hints are claims: where they are silent or contradict each
//! other, the tool writes and asks.

mod contract;
mod guide;
mod merge;
mod names;
mod update;

use quarterdeck_contracts::ToolId;

pub use names::{InvalidImport, folder_of, tool_id};
pub use update::{Update, UpdateError, update_folder};

use crate::binding::{BINDING_FILE, Binding, is_tool_name};
use crate::published::PublishedTool;
use crate::published_file::{PUBLISHED_FILE, published_to_text};
use crate::server_config::ServerName;

/// The longest description that is imported, in bytes. It is read by a person before a model reads it.
const MAX_DESCRIPTION_BYTES: usize = 32 << 10;
/// All of a tool together; a file of a tool folder may have a mebibyte.
const MAX_PUBLISHED_BYTES: usize = 256 << 10;

/// The files of a folder, by their names, and what an author should know of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFolder {
    pub id: ToolId,
    /// The folder's name.
    pub name: String,
    pub files: Vec<(&'static str, String)>,
    /// What is not as the server published it, one sentence each.
    pub notes: Vec<String>,
}

/// What a folder is made from.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    pub server: &'a ServerName,
    pub tool: &'a PublishedTool,
    pub id: &'a ToolId,
    /// Where editors find the schema of `schema.json`.
    pub editor_schema: Option<&'a str>,
}

impl Import<'_> {
    /// Makes the folder.
    ///
    /// # Errors
    ///
    /// The tool cannot be imported, and why.
    pub fn to_folder(&self) -> Result<ToolFolder, InvalidImport> {
        check(self.tool)?;
        let contract = contract::contract(self)?;
        let mut notes = contract.notes;
        if self.id.as_str() != self.tool.name {
            notes.push(format!(
                "the tool is `{}` here, because `{}` is taken or cannot be the id of a tool",
                self.id, self.tool.name
            ));
        }
        let files = vec![
            ("schema.json", format!("{:#}\n", contract.schema)),
            ("guide.md", guide::Guide::new(self.server, self.tool).to_text()),
            (BINDING_FILE, self.binding().to_text()),
            (PUBLISHED_FILE, published_to_text(self.tool)),
        ];
        Ok(ToolFolder { id: self.id.clone(), name: folder_of(self.id), files, notes })
    }

    fn binding(&self) -> Binding {
        Binding { server: self.server.clone(), tool: self.tool.name.clone(), digest: self.tool.digest() }
    }
}

fn check(tool: &PublishedTool) -> Result<(), InvalidImport> {
    if !is_tool_name(&tool.name) {
        return Err(InvalidImport::Name);
    }
    if tool.description.as_ref().is_some_and(|text| text.len() > MAX_DESCRIPTION_BYTES) {
        return Err(InvalidImport::LongDescription(MAX_DESCRIPTION_BYTES));
    }
    let size = published_to_text(tool).len();
    if size > MAX_PUBLISHED_BYTES {
        return Err(InvalidImport::TooLarge(size, MAX_PUBLISHED_BYTES));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
