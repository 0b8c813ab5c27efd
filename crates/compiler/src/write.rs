//! Puts an artifact on disk: whole, or not at all.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use quarterdeck_contracts::Artifact;

/// Why an artifact could not be written. What stood there before still stands.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Writes `artifact` beside `path` and then moves it into place, so that a reader never sees a part of it.
pub fn write_artifact(artifact: &Artifact, path: &Path) -> Result<(), WriteError> {
    let write = || -> io::Result<()> {
        let path = &destination(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no folder {}", folder.display()),
            ));
        }
        // The name of the temporary file means nothing to the caller; what went wrong does.
        let mut file =
            readable_by_others().tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
        let mut text = serde_json::to_vec_pretty(artifact)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Where the bytes go: behind a link, the file that it leads to. Only files are replaced.
fn destination(path: &Path) -> io::Result<PathBuf> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {
            if !may_be_artifact(path)? {
                return Err(io::Error::other(
                    "what stands there is not a registry artifact and was left alone; move it away, or choose another name",
                ));
            }
            path.canonicalize()
        }
        Ok(_) => Err(io::Error::other("something that is not a file stands there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// Whether a file begins as an artifact does, of whatever version and however damaged, or is empty. A foreign
/// file is not replaced because it has our name, or because a name was mistyped.
fn may_be_artifact(path: &Path) -> io::Result<bool> {
    const PROBE_BYTES: u64 = 256;
    let mut start = Vec::new();
    std::fs::File::open(path)?.take(PROBE_BYTES).read_to_end(&mut start)?;
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start();
    let inside = text.strip_prefix('{').map(str::trim_start);
    Ok(text.is_empty() || inside.is_some_and(|inside| inside.starts_with("\"formatVersion\"")))
}

/// Temporary files are private by default; an artifact is an ordinary file, as far as the umask allows.
fn readable_by_others() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tool_registry.").suffix(".partial");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder
}
