//! The folder in which bundles are stored, each under its digest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::LoadError;
use super::bundle::{Bundle, MAX_BUNDLE_BYTES};

/// Stores bundles. One process uses a folder at a time.
#[derive(Debug)]
pub struct BundleFolder {
    folder: PathBuf,
    max_stored: usize,
}

/// Why a stored bundle could not be used, or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    #[error("cannot write {path}: {source}; check the folder's permissions and the disk's free space")]
    Write { path: String, source: io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{path} is damaged: {source}; remove it and activate the version again with `--artifact FILE`")]
    Damaged { path: String, source: LoadError },
    #[error(
        "the version {digest} in the store is damaged: {reason}; activate it again with `--artifact FILE`"
    )]
    DamagedInStore { digest: String, reason: String },
    #[error("{path} holds another version than its name says; remove it and activate the version again")]
    OtherDigest { path: String },
}

impl BundleFolder {
    /// The folder need not exist yet. At most `max_stored` bundles are kept, in addition to those in use.
    pub fn new(folder: PathBuf, max_stored: usize) -> Self {
        Self { folder, max_stored }
    }

    pub(crate) fn max_stored(&self) -> usize {
        self.max_stored
    }

    /// Stores a bundle, whole or not at all, for the owner alone.
    pub(crate) fn save(&self, bundle: &Bundle) -> Result<(), BundleError> {
        let path = self.file(bundle.digest());
        let failed = |source| BundleError::Write { path: path.display().to_string(), source };
        if path.is_file() && self.load(bundle.digest()).is_ok() {
            return Ok(());
        }
        create_folder(&self.folder).map_err(failed)?;
        let partial = self.folder.join(format!("{}.partial", bundle.digest()));
        write_synced(&partial, bundle.to_json().as_bytes()).map_err(failed)?;
        fs::rename(&partial, &path).map_err(failed)?;
        // The name is on the disk, too, before a version is said to be stored.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// A stored bundle, verified; `None` when there is none.
    pub(crate) fn load(&self, digest: &str) -> Result<Option<Bundle>, BundleError> {
        let path = self.file(digest);
        let shown = || path.display().to_string();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(BundleError::Read { path: shown(), source }),
        };
        let mut text = String::new();
        let limit = MAX_BUNDLE_BYTES as u64 + 1;
        file.take(limit)
            .read_to_string(&mut text)
            .map_err(|source| BundleError::Read { path: shown(), source })?;
        let bundle =
            Bundle::from_json(&text).map_err(|source| BundleError::Damaged { path: shown(), source })?;
        if bundle.digest() != digest {
            return Err(BundleError::OtherDigest { path: shown() });
        }
        Ok(Some(bundle))
    }

    pub(crate) fn contains(&self, digest: &str) -> bool {
        self.file(digest).is_file()
    }

    /// The digests of all that is stored, the latest first.
    pub(crate) fn digests(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found: Vec<(SystemTime, String)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let digest = name.strip_suffix(".json").filter(|name| is_digest(name))?.to_owned();
                let modified = entry.metadata().and_then(|metadata| metadata.modified());
                Some((modified.unwrap_or(SystemTime::UNIX_EPOCH), digest))
            })
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, digest)| digest).collect()
    }

    /// Removes the oldest bundles beyond the limit, but none in use.
    pub(crate) fn remove_oldest(&self, is_used: impl Fn(&str) -> bool) {
        let unused = self.digests().into_iter().filter(|digest| !is_used(digest));
        for digest in unused.skip(self.max_stored) {
            let path = self.file(&digest);
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), error = %error, "stored version could not be removed");
            }
        }
    }

    fn file(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.json"))
    }
}

/// Whether a text has the form of a digest: 64 hexadecimal digits in lower case. Digests become names of files.
pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
