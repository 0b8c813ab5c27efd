//! What a server publishes beside what was imported of it.

use quarterdeck_contracts::UpstreamServer;
use quarterdeck_host_mcp::PublishedTool;

use super::imported::ImportedTool;

/// What a server publishes at one moment.
pub(super) struct Listing {
    /// What it says of itself.
    pub(super) server: UpstreamServer,
    pub(super) tools: Vec<PublishedTool>,
}

impl Listing {
    pub(super) fn find(&self, name: &str) -> Option<&PublishedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn state_of(&self, imported: &ImportedTool) -> ImportState {
        match self.find(&imported.binding.tool) {
            None => ImportState::Missing,
            Some(tool) if tool.digest() == imported.binding.digest => ImportState::Current,
            Some(_) => ImportState::Changed,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportState {
    /// Published as it was imported.
    Current,
    /// Published otherwise: unavailable until it is accepted.
    Changed,
    /// Not published any more.
    Missing,
}

impl ImportState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Current => "as imported",
            Self::Changed => "changed",
            Self::Missing => "missing",
        }
    }
}
