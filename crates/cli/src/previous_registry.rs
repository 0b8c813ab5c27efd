//! What was served before: the data folder remembers the last registry, so that operators see what has changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use quarterdeck_compiler::diff;
use quarterdeck_contracts::Artifact;
use quarterdeck_runtime::Registry;
use quarterdeck_server::{Change, RegistryChange};

use crate::commands::diff::read;
use crate::data;

/// Remembers the registry that is about to be served, and says how it differs from the one before. It is for looking
/// only: whatever goes wrong with it is told, and the server starts all the same.
pub(crate) fn change(tools: &Path, data: &Path, registry: &Registry) -> Option<RegistryChange> {
    match look(tools, data, registry) {
        Ok(change) => change,
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the registry before could not be compared");
            None
        }
    }
}

/// The registry that was served last, if it can be told.
pub(crate) fn last_served(data: &Path) -> Option<Artifact> {
    read(&served_file(data)).ok()
}

fn look(tools: &Path, folder: &Path, registry: &Registry) -> anyhow::Result<Option<RegistryChange>> {
    let artifact = tools.join("tool_registry.json");
    // Where the artifact could not be written, there is nothing to remember.
    if !artifact.is_file() {
        return Ok(None);
    }
    let current = read(&artifact)?;
    if current.content_hash != registry.snapshot().content_hash() {
        return Ok(None);
    }
    let (served, before) = (served_file(folder), before_file(folder));
    let last = served.is_file().then(|| read(&served).ok()).flatten();
    if last.as_ref().is_none_or(|last| last.content_hash != current.content_hash) {
        if last.is_some() {
            fs::rename(&served, &before).with_context(|| format!("cannot write {}", before.display()))?;
        }
        // Written, not copied: a copy would be as readable as the tools folder is.
        let bytes = fs::read(&artifact).with_context(|| format!("cannot read {}", artifact.display()))?;
        data::write(&served, &bytes)?;
    }
    if !before.is_file() {
        return Ok(None);
    }
    let previous = read(&before)?;
    let difference = diff(&previous, &current);
    let changes = difference.changes.iter().map(|change| Change {
        tool: change.tool.clone(),
        effect: change.effect.as_str().to_owned(),
        what: change.what.clone(),
        example: change.example.clone(),
    });
    Ok(Some(RegistryChange {
        previous: previous.version.clone(),
        is_breaking: difference.is_breaking(),
        changes: changes.collect(),
    }))
}

fn served_file(data: &Path) -> PathBuf {
    data.join("registry.json")
}

fn before_file(data: &Path) -> PathBuf {
    data.join("registry.before.json")
}
