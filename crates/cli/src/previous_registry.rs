//! The registry that was served last. The data folder keeps a copy, so that operators see what has changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use quarterdeck_compiler::diff;
use quarterdeck_contracts::Artifact;
use quarterdeck_runtime::Registry;
use quarterdeck_server::{RegistryChange, ToolChange};

use crate::commands::diff::load_artifact;
use crate::data;

/// Keeps a copy of the registry that is about to be served, and compares it with the one before. The result is only
/// shown to operators, so a failure is logged and the server starts.
pub(crate) fn compare(tools: &Path, data: &Path, registry: &Registry) -> Option<RegistryChange> {
    match try_compare(tools, data, registry) {
        Ok(change) => change,
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "previous registry could not be compared");
            None
        }
    }
}

/// The artifact that was served last, if its copy can be read.
pub(crate) fn load(data: &Path) -> Option<Artifact> {
    load_artifact(&served_file(data)).ok()
}

/// Whether an artifact is the one that was served last, byte by byte, so that neither has to be parsed.
pub(crate) fn is_served(artifact: &Path, data: &Path) -> bool {
    match (fs::read(artifact), fs::read(served_file(data))) {
        (Ok(current), Ok(served)) => current == served,
        _ => false,
    }
}

fn try_compare(tools: &Path, data: &Path, registry: &Registry) -> anyhow::Result<Option<RegistryChange>> {
    let artifact = tools.join("tool_registry.json");
    // The artifact could not be written to the tools folder.
    if !artifact.is_file() {
        return Ok(None);
    }
    let (served, before) = (served_file(data), before_file(data));
    if !before.is_file() && is_served(&artifact, data) {
        return Ok(None);
    }
    let current = load_artifact(&artifact)?;
    if current.content_hash != registry.snapshot().content_hash() {
        return Ok(None);
    }
    let last = served.is_file().then(|| load_artifact(&served).ok()).flatten();
    if last.is_some_and(|last| last.content_hash != current.content_hash) {
        fs::rename(&served, &before).with_context(|| format!("cannot write {}", before.display()))?;
    }
    if !is_served(&artifact, data) {
        // Also where only the time of the build differs, so that the next start need not parse both. Written, not copied: a copy
        // would be as readable as the tools folder is.
        let bytes = fs::read(&artifact).with_context(|| format!("cannot read {}", artifact.display()))?;
        data::write(&served, &bytes)?;
    }
    if !before.is_file() {
        return Ok(None);
    }
    let previous = load_artifact(&before)?;
    let difference = diff(&previous, &current);
    let changes = difference.changes.iter().map(|change| ToolChange {
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
