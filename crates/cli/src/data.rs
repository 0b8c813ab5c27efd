//! The data folder: its files, its lock, and its permissions. Commands that only read create nothing in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

pub(crate) const STORE_FILE: &str = "quarterdeck.db";
pub(crate) const KNOWLEDGE_FILE: &str = "kb.db";
pub(crate) const COOKIE_SECRET_FILE: &str = "cookie_secret";
/// Locked by the one process that uses the folder.
pub(crate) const LOCK_FILE: &str = "lock";

pub(crate) fn store_file(data: &Path) -> PathBuf {
    data.join(STORE_FILE)
}

pub(crate) fn audit_file(data: &Path) -> PathBuf {
    data.join("audit.jsonl")
}

/// What operators did while the server wrote its own trail.
pub(crate) fn operator_audit_file(data: &Path) -> PathBuf {
    data.join("audit-operator.jsonl")
}

/// The deck's charts of this node.
pub(crate) fn history_file(data: &Path) -> PathBuf {
    data.join("deck-history.json.gz")
}

/// Records, vectors and index of the knowledge base.
pub(crate) fn knowledge_file(data: &Path) -> PathBuf {
    data.join(KNOWLEDGE_FILE)
}

/// The stored versions of the registry.
pub(crate) fn versions_folder(data: &Path) -> PathBuf {
    data.join("versions")
}

/// The generated secret that signs cookies.
pub(crate) fn cookie_secret_file(data: &Path) -> PathBuf {
    data.join(COOKIE_SECRET_FILE)
}

/// The secret that signs cookies where none is configured. It is generated when it is missing, for its owner alone.
pub(crate) fn load_cookie_secret(data: &Path) -> anyhow::Result<String> {
    let file = &cookie_secret_file(data);
    let read = || match std::fs::read_to_string(file) {
        Ok(text) if text.trim().len() >= 32 => Ok(text.trim().to_owned()),
        Ok(_) => Err(anyhow!(
            "{} is not a secret of 32 characters or more, and was left alone; move it away to have a new one generated",
            file.display()
        )),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    if file.symlink_metadata().is_ok() {
        return read();
    }
    create(data)?;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system has no random numbers: {error}"))?;
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let cannot = || format!("cannot write {}", file.display());
    let mut partial = tempfile::NamedTempFile::new_in(data).with_context(cannot)?;
    partial.write_all(secret.as_bytes()).with_context(cannot)?;
    partial.as_file().sync_all().with_context(cannot)?;
    match partial.persist_noclobber(file) {
        Ok(_) => Ok(secret),
        // Another process was faster; its secret counts.
        Err(failure) if failure.error.kind() == std::io::ErrorKind::AlreadyExists => read(),
        Err(failure) => Err(failure.error).with_context(cannot),
    }
}

/// Writes a file of the folder, whole or not at all, for its owner alone.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut partial = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    partial.write_all(bytes).with_context(cannot)?;
    partial.persist(file).with_context(cannot)?;
    Ok(())
}

/// Makes the folder, for its owner alone.
pub(crate) fn create(data: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data).with_context(|| format!("cannot make {}", data.display()))
}

/// Makes names in a folder durable, as the contents of its files are.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Fails with a way out where nothing has been recorded yet.
pub(crate) fn require_file(file: &Path) -> anyhow::Result<()> {
    match file.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(anyhow!(
            "nothing has been recorded yet: there is no {}\n\
             help: run this in the folder that quarterdeck runs in, or point `--data` at its data folder",
            file.display(),
        )),
        Err(error) => Err(error).with_context(|| format!("cannot look for {}", file.display())),
    }
}

/// Locks a file for this process until it is dropped or the process ends; `None` where another process has locked it.
///
/// Sessions live in one process, and the audit chain has one writer.
pub(crate) fn try_lock(path: &Path) -> anyhow::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
