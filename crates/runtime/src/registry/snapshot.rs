//! A loaded artifact. It never changes, and a session keeps the one that it was opened with.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use quarterdeck_contracts::{Category, Mode, Provider};
use serde_json::Value;

use super::{Hosts, LoadProblem, LoadedTool};

/// The tools of one artifact.
pub struct Snapshot {
    pub(super) version: Arc<str>,
    content_hash: String,
    commit: Option<String>,
    /// Hashed fast: a call looks its tool up many times.
    tools: IndexMap<String, LoadedTool, foldhash::fast::RandomState>,
    declarations: BTreeMap<(Provider, Mode), Vec<Value>>,
    left_out: Vec<LoadProblem>,
    /// Kept, because sessions outlive a reload and still need what runs their handlers.
    _hosts: Hosts,
}

pub(super) struct Header {
    pub(super) version: String,
    pub(super) content_hash: String,
    pub(super) commit: Option<String>,
}

/// A provider that the artifact was not built for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the registry has no declarations for {0}; build it again with a quarterdeck that knows this provider"
)]
pub struct NotBuilt(pub Provider);

impl Snapshot {
    pub(super) fn new(artifact: Header, tools: Vec<LoadedTool>, hosts: Hosts) -> Self {
        let Header { version, content_hash, commit } = artifact;
        let mut declarations = BTreeMap::new();
        for tool in &tools {
            let metadata = tool.metadata();
            for (provider, declaration) in &tool.compiled().provider_schemas {
                for mode in [Mode::Text, Mode::Voice] {
                    // A provider that was built for has a list in each mode, if only an empty one.
                    let list: &mut Vec<Value> = declarations.entry((*provider, mode)).or_default();
                    if metadata.allowed_modes.contains(&mode) {
                        list.push(declaration.clone());
                    }
                }
            }
        }
        let tools = tools.into_iter().map(|tool| (tool.metadata().tool_id.to_string(), tool)).collect();
        let (version, left_out) = (version.into(), Vec::new());
        Self { version, content_hash, commit, tools, declarations, left_out, _hosts: hosts }
    }

    /// Notes the tools of the artifact that cannot run here.
    pub(super) fn without(self, left_out: Vec<LoadProblem>) -> Self {
        Self { left_out, ..self }
    }

    /// Why tools of the artifact are not among these: their handlers cannot run here.
    pub fn left_out(&self) -> &[LoadProblem] {
        &self.left_out
    }

    /// The readable label: `1.0.3fa9c2e1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Identifies the content.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// The commit that the sources came from.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub fn find(&self, tool_id: &str) -> Option<&LoadedTool> {
        self.tools.get(tool_id)
    }

    pub fn tools(&self) -> impl Iterator<Item = &LoadedTool> {
        self.tools.values()
    }

    /// The tools that look up, act or compute.
    pub fn in_category(&self, category: Category) -> impl Iterator<Item = &LoadedTool> {
        self.tools().filter(move |tool| tool.metadata().category == category)
    }

    /// The tools that may be called in a mode, with their summaries.
    pub fn summaries(&self, mode: Mode) -> impl Iterator<Item = (&str, &str)> {
        let allowed = self.tools().filter(move |tool| tool.metadata().allowed_modes.contains(&mode));
        allowed.map(|tool| (tool.metadata().tool_id.as_str(), tool.summary()))
    }

    /// A provider's tool declarations in a mode, computed when the registry was loaded.
    pub fn declarations(&self, provider: Provider, mode: Mode) -> Result<&[Value], NotBuilt> {
        if self.tools.is_empty() {
            return Ok(&[]);
        }
        self.declarations.get(&(provider, mode)).map(Vec::as_slice).ok_or(NotBuilt(provider))
    }
}
