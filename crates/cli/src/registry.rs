//! The registry that a server runs: the artifact as it is, when nothing has changed since it was built.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, anyhow, bail};
use quarterdeck_compiler::write_artifact;
use quarterdeck_contracts::{Artifact, artifact_hash, sha256};
use quarterdeck_runtime::{Bundle, LoadError, Registry};
use serde_json::{Value, json};

use crate::commands::diff::load_artifact;
use crate::config::{ArtifactRule, Folders};
use crate::handler_access::HandlerAccess;
use crate::terminal::{info, warn};
use crate::{data, handler_kinds, previous_registry, report, wire};

const ARTIFACT: &str = "tool_registry.json";

pub(crate) struct OpenedRegistry {
    pub(crate) registry: Registry,
    /// The same as an artifact with its handlers, to be stored.
    pub(crate) bundle: Bundle,
    /// The difference from the registry before it, if there is one.
    pub(crate) replacement: Option<Replacement>,
}

/// One registry replaced another.
pub(crate) struct Replacement {
    previous: String,
    version: String,
    digest: String,
    /// What has become of each tool that is not the same: `changed`, `added` or `removed`.
    tools: BTreeMap<String, &'static str>,
}

impl Replacement {
    fn to_text(&self) -> String {
        let tools: Vec<_> = self.tools.iter().map(|(tool, what)| format!("{tool} {what}")).collect();
        format!("the registry is replaced: {} → {} ({})", self.previous, self.version, tools.join(", "))
    }

    /// The fields of a line of the audit trail.
    pub(crate) fn to_json(&self) -> Value {
        let Self { previous, version, digest, tools } = self;
        json!({ "previous": previous, "registryVersion": version, "digest": digest, "tools": tools })
    }
}

/// The registry of a tools folder: as it lies there where it is locked, and otherwise compiled anew when a file has
/// changed. `None` when the tools have problems, which have been reported.
pub(crate) fn open(folders: &Folders, access: &HandlerAccess) -> anyhow::Result<Option<OpenedRegistry>> {
    let Folders { tools, data, artifact: rule, .. } = folders;
    let artifact = tools.join(ARTIFACT);
    // What lay in the folder, if it was compiled anew, which may write over it.
    let mut in_folder = None;
    let (registry, bundle) = match rule {
        ArtifactRule::Locked { digest } => open_locked(&artifact, tools, digest.as_deref(), access)?,
        ArtifactRule::Compiled => match open_fresh(&artifact, tools, data, access)? {
            Some(opened) => opened,
            None => {
                in_folder = Some(load_artifact(&artifact).ok());
                match compile(tools, data, access)? {
                    Some(opened) => opened,
                    None => return Ok(None),
                }
            }
        },
    };
    report::left_out(&registry.snapshot(), tools);
    // The copy of what was served last need not be parsed if it is the artifact that was just loaded.
    let is_served = in_folder.is_none() && previous_registry::is_served(&artifact, data);
    let served = if is_served { None } else { previous_registry::load(data) };
    let mut before = served.into_iter().chain(in_folder.flatten());
    let replacement = before.find_map(|before| replacement(&before, &registry));
    if let Some(replacement) = &replacement {
        info(&replacement.to_text());
    }
    Ok(Some(OpenedRegistry { registry, bundle, replacement }))
}

/// An artifact with its handlers, each file read once.
fn load(
    artifact: Artifact,
    tools: &Path,
    access: &HandlerAccess,
) -> anyhow::Result<Result<(Registry, Bundle), LoadError>> {
    let hosts = handler_kinds::hosts(access)?;
    Ok(Bundle::collect(artifact, tools)
        .and_then(|bundle| Ok((Registry::from_bundle(bundle.clone(), tools, hosts)?, bundle))))
}

/// The artifact of the folder, if it has the digest. That is compared before any handler is prepared, and nothing is
/// read a second time.
fn open_locked(
    artifact: &Path,
    tools: &Path,
    digest: Option<&str>,
    access: &HandlerAccess,
) -> anyhow::Result<(Registry, Bundle)> {
    let help = "help: `quarterdeck build` makes it and prints its digest; bring the artifact together with the handlers \
                that it was built from, or start without `--locked` to have the folder compiled";
    if !artifact.is_file() {
        bail!("there is no {}, and a locked server compiles nothing\n{help}", artifact.display());
    }
    let found = load_artifact(artifact).map_err(|error| anyhow!("{error:#}\n{help}"))?;
    let hash = artifact_hash(&found.response_schema_version, &found.tools);
    if let Some(digest) = digest.filter(|digest| *digest != hash) {
        bail!(
            "{} has the digest {hash}, and this server is locked to {digest}\n\
             help: put the artifact back that was released, or start with the digest of this one",
            artifact.display()
        );
    }
    load(found, tools, access)?
        .map_err(|error| anyhow!("{} cannot be served as it is:\n{error}\n{help}", artifact.display()))
}

/// The artifact as it is, when nothing has changed since it was built.
fn open_fresh(
    artifact: &Path,
    tools: &Path,
    folder: &Path,
    access: &HandlerAccess,
) -> anyhow::Result<Option<(Registry, Bundle)>> {
    let current = fingerprint(tools)?;
    if !artifact.is_file() || !fs::read_to_string(stamp(folder)).is_ok_and(|known| known == current) {
        return Ok(None);
    }
    let loaded = match Bundle::read(artifact, tools) {
        Ok(bundle) => Registry::from_bundle(bundle.clone(), tools, handler_kinds::hosts(access)?)
            .map(|registry| (registry, bundle)),
        Err(error) => Err(error),
    };
    match loaded {
        Ok(opened) => Ok(Some(opened)),
        Err(error) => {
            warn(&format!("{} is not served: {error}", artifact.display()));
            Ok(None)
        }
    }
}

fn compile(
    tools: &Path,
    folder: &Path,
    access: &HandlerAccess,
) -> anyhow::Result<Option<(Registry, Bundle)>> {
    info(&format!("compiling the tools in {}", tools.display()));
    let compilation = wire::compile_folder(tools, false)?;
    let Some(compiled) = compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(None);
    };
    let opened = load(compiled.clone(), tools, access)??;
    keep(&compiled, tools, folder, &fingerprint(tools)?);
    Ok(Some(opened))
}

/// Writes a compiled artifact to its folder, with the fingerprint of the sources. Both only save time at the next start;
/// a folder that cannot be written to is served all the same.
pub(crate) fn keep(artifact: &Artifact, tools: &Path, data: &Path, fingerprint: &str) {
    match write_artifact(artifact, &tools.join(ARTIFACT)) {
        Ok(()) => drop(data::write(&stamp(data), fingerprint.as_bytes())),
        Err(error) => {
            let error = anyhow::Error::new(error);
            warn(&format!("the compiled tools are served, but not kept: {error:#}"));
        }
    }
}

/// How a registry differs from another one; `None` when it does not.
fn replacement(before: &Artifact, now: &Registry) -> Option<Replacement> {
    let snapshot = now.snapshot();
    if before.content_hash == snapshot.content_hash() {
        return None;
    }
    let mut gone: BTreeMap<&str, &str> =
        before.tools.iter().map(|tool| (tool.metadata.tool_id.as_str(), tool.hash.as_str())).collect();
    let mut tools = BTreeMap::new();
    for tool in snapshot.tools() {
        let id = tool.metadata().tool_id.as_str();
        match gone.remove(id) {
            Some(hash) if hash == tool.compiled().hash => {}
            Some(_) => drop(tools.insert(id.to_owned(), "changed")),
            None => drop(tools.insert(id.to_owned(), "added")),
        }
    }
    tools.extend(gone.into_keys().map(|id| (id.to_owned(), "removed")));
    Some(Replacement {
        previous: before.version.clone(),
        version: snapshot.version().to_owned(),
        digest: snapshot.content_hash().to_owned(),
        tools,
    })
}

/// The file that keeps the fingerprint of the tools folder as it was compiled.
fn stamp(folder: &Path) -> PathBuf {
    folder.join("tools.stamp")
}

/// Names, sizes and times of all files in tool folders, and this program's own version: what is cheap to ask for and
/// changes when any of them does. What lies beside the folders is the artifact, or one that is being written.
pub(crate) fn fingerprint(tools: &Path) -> anyhow::Result<String> {
    let mut lines: Vec<_> = source_files(tools)?.iter().map(|path| file_line(path)).collect();
    lines.sort();
    lines.push(own_hashes());
    Ok(sha256(lines.join("\n").as_bytes()))
}

/// All files in tool folders.
pub(crate) fn source_files(tools: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![tools.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| {
            format!("cannot read {}; point `--tools` at a folder of tool folders", folder.display())
        })?;
        for entry in entries {
            let entry = entry?;
            // Most systems tell what an entry is together with its name.
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if folder != tools {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// Name, size and time of one file; only its name if it cannot be looked at.
pub(crate) fn file_line(path: &Path) -> String {
    fs::metadata(path).map_or_else(|_| path.display().to_string(), |metadata| line(path, &metadata))
}

fn line(path: &Path, metadata: &fs::Metadata) -> String {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {} {}", path.display(), metadata.len(), since.map_or(0, |since| since.as_nanos()))
}

/// What the handlers that are compiled in were made of.
fn own_hashes() -> String {
    let handlers = quarterdeck_tools::handlers();
    let hashes: Vec<_> = handlers.iter().map(|handler| handler.source_hash).collect();
    format!("{} {}", env!("CARGO_PKG_VERSION"), hashes.join(" "))
}
