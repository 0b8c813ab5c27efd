//! The registry that a server runs: the artifact as it is, when nothing has changed since it was built.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::Context;
use quarterdeck_compiler::write_artifact;
use quarterdeck_contracts::sha256;
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_runtime::{Hosts, NativeHost, Registry};

use crate::terminal::say;
use crate::{data, report, wire};

/// The registry of a tools folder, compiled anew when a file has changed. `None` when the tools have problems, which
/// have been told.
pub(crate) fn open(tools: &Path, folder: &Path) -> anyhow::Result<Option<Registry>> {
    let artifact = tools.join("tool_registry.json");
    let stamp = folder.join("tools.stamp");
    let seen = fingerprint(tools)?;
    let is_fresh = artifact.is_file() && fs::read_to_string(&stamp).is_ok_and(|known| known == seen);
    if is_fresh && let Ok(registry) = Registry::load(&artifact, tools, hosts()?) {
        registry.lock();
        return Ok(Some(registry));
    }
    say(&format!("compiling the tools in {}", tools.display()));
    let compilation = wire::compile_folder(tools, false)?;
    let Some(compiled) = compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(None);
    };
    let registry = Registry::from_artifact(compiled.clone(), tools, hosts()?)?;
    registry.lock();
    // Both only save time at the next start; a folder that cannot be written to is served all the same.
    if write_artifact(&compiled, &artifact).is_ok() {
        let _ = data::write(&stamp, fingerprint(tools)?.as_bytes());
    }
    Ok(Some(registry))
}

fn hosts() -> anyhow::Result<Hosts> {
    Ok(Hosts {
        js: Arc::new(JsHost::new(HostConfig::default())?),
        native: Arc::new(NativeHost::new(quarterdeck_tools::handlers())),
    })
}

/// Names, sizes and times of all files in tool folders, and this program's own version: what is cheap to ask for and
/// changes when any of them does. What lies beside the folders is the artifact, or one that is being written.
fn fingerprint(tools: &Path) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let mut folders = vec![tools.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| {
            format!("cannot read {}; point `--tools` at a folder of tool folders", folder.display())
        })?;
        for entry in entries {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if folder != tools {
                lines.push(line(&entry.path(), &metadata));
            }
        }
    }
    lines.sort();
    lines.push(own_hashes());
    Ok(sha256(lines.join("\n").as_bytes()))
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
