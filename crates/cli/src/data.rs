//! The data folder: what lies in it, who may change it, and that whoever only looks makes nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

/// The name of this machine's audit chain in the store.
pub(crate) const NODE: &str = "local";

/// The store.
pub(crate) fn store_file(data: &Path) -> PathBuf {
    data.join("quarterdeck.db")
}

/// The audit trail.
pub(crate) fn trail_file(data: &Path) -> PathBuf {
    data.join("audit.jsonl")
}

/// The knowledge base's vectors.
pub(crate) fn knowledge(data: &Path) -> PathBuf {
    data.join("kb.db")
}

/// The secret of our own that signs the cookies.
pub(crate) fn cookie_secret_file(data: &Path) -> PathBuf {
    data.join("cookie_secret")
}

/// What signs the cookies when nobody gave us anything. It is made when it is not there, for its owner alone.
pub(crate) fn cookie_secret(data: &Path) -> anyhow::Result<String> {
    let file = &cookie_secret_file(data);
    let read = || match std::fs::read_to_string(file) {
        Ok(text) if text.trim().len() >= 32 => Ok(text.trim().to_owned()),
        Ok(_) => Err(anyhow!(
            "{} is not a secret of 32 characters or more, and was left alone; move it away, and a new one is made",
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
        // Somebody was faster; there is one secret, and it is theirs.
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

/// Refuses to go on where nothing has ever been kept.
pub(crate) fn must_exist(file: &Path) -> anyhow::Result<()> {
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

/// Takes the folder for this process alone, until the value is dropped or the process ends.
///
/// A session lives in the process that serves it, and a chain of hashes has one writer: a second one would end the
/// session behind its back, or break the chain.
pub(crate) fn claim(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another quarterdeck is at work in {}\n\
             help: a running server has its own page for operators; otherwise stop it, and run this again",
            data.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
