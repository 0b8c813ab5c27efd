//! Makes a backup while a server may be running.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_knowledge::store::copy_file;
use quarterdeck_runtime::{Clock, SystemClock};

use super::files::{self, Listed};
use super::manifest::{FileEntry, MANIFEST_FILE, Manifest, Part};
use crate::node_data::NodeData;
use crate::output::check_new;
use crate::terminal::warn;
use crate::{data, wire};

/// How often the audit log is copied again because its files have changed their names meanwhile.
const MAX_AUDIT_ATTEMPTS: usize = 5;

/// Writes a backup under a temporary name beside `to`, and gives it its name when all of it is on the disk.
pub(crate) async fn write(node: &NodeData, to: &Path) -> anyhow::Result<Manifest> {
    let store = wire::find_store(node).await?;
    let parent = check_new(to)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".quarterdeck-backup-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let staging = builder.tempdir_in(parent).with_context(|| format!("cannot write {}", to.display()))?;
    store.backup(&data::store_file(staging.path())).await?;
    store.close().await?;
    // After the store: a log that is longer than its store knows is sound, a shorter one counts as cut off.
    let mut listed = copy_audit_log(&node.folder, staging.path())?;
    listed.push(Listed(data::STORE_FILE.to_owned()));
    if copy_knowledge(&node.folder, staging.path()) {
        listed.push(Listed(data::KNOWLEDGE_FILE.to_owned()));
    }
    for file in files::list(&node.folder)?.into_iter().filter(|file| file.part() != Part::AuditLog) {
        if files::copy(&file.below(&node.folder), &file.below(staging.path()))? {
            listed.push(file);
        }
    }
    listed.sort();
    let manifest = describe(staging.path(), &listed)?;
    let cannot = || format!("cannot write {}", to.display());
    let mut file = files::create(&staging.path().join(MANIFEST_FILE)).with_context(cannot)?;
    writeln!(file, "{:#}", manifest.to_json()).with_context(cannot)?;
    file.sync_all().with_context(cannot)?;
    data::sync_folder(staging.path()).with_context(cannot)?;
    check_new(to)?;
    std::fs::rename(staging.path(), to).with_context(cannot)?;
    // It has its name now, and there is nothing left to remove.
    let _ = staging.keep();
    data::sync_folder(parent).with_context(cannot)?;
    Ok(manifest)
}

/// Copies every file of the audit log. One that is begun or renamed meanwhile could be copied twice or not at all, so that
/// the copy counts only when the files have the same names afterwards.
fn copy_audit_log(data: &Path, staging: &Path) -> anyhow::Result<Vec<Listed>> {
    let list = || -> anyhow::Result<Vec<Listed>> {
        Ok(files::list(data)?.into_iter().filter(|file| file.part() == Part::AuditLog).collect())
    };
    for _ in 0..MAX_AUDIT_ATTEMPTS {
        let listed = list()?;
        for file in &listed {
            let copy = file.below(staging);
            if files::copy(&file.below(data), &copy)? && file.0.ends_with(".jsonl") {
                files::cut_torn_line(&copy).with_context(|| format!("cannot write {}", copy.display()))?;
            }
        }
        if list()? == listed {
            return Ok(listed);
        }
        for file in listed {
            match std::fs::remove_file(file.below(staging)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
    }
    bail!("the files of the audit trail kept changing their names; make the backup again")
}

/// Whether there is a copy now. All of it can be made again from the records, so that a damaged file is no reason to have no
/// backup.
fn copy_knowledge(data: &Path, staging: &Path) -> bool {
    let file = data::knowledge_file(data);
    if !file.exists() {
        return false;
    }
    let copied = copy_file(&file, &data::knowledge_file(staging));
    if let Err(error) = &copied {
        warn(&format!(
            "{} is not in the backup: {error}; after a restore it is built again from the records",
            file.display()
        ));
    }
    copied.is_ok()
}

/// Reads back what was written.
fn describe(staging: &Path, listed: &[Listed]) -> anyhow::Result<Manifest> {
    let mut entries = Vec::new();
    for file in listed {
        let path = file.below(staging);
        let cannot = || format!("cannot read {}", path.display());
        let (bytes, digest) = files::measure(&path).with_context(cannot)?;
        let part = file.part();
        let format = match part {
            Part::Store | Part::Knowledge => Some(files::database_format(&path).with_context(cannot)?),
            _ => None,
        };
        entries.push(FileEntry { path: file.0.clone(), part, bytes, digest, format });
    }
    let now = jiff::Timestamp::try_from(SystemClock.now()).context("the clock is wrong")?;
    Ok(Manifest {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        files: entries,
    })
}
