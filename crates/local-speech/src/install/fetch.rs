//! Fetches archives with npm and pip, or finds those that were fetched before.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{InstallError, InstallSources, at};
use crate::catalogue::{Package, PackageSource};

/// The archive of a package.
pub(super) fn fetch(
    package: &Package,
    sources: &InstallSources,
    staging: &Path,
) -> Result<PathBuf, InstallError> {
    if let Some(folder) = &sources.archives {
        return find(package, folder);
    }
    let folder = staging.join("archives");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let wanted = package.name;
    match package.source {
        PackageSource::Npm => {
            let mut command = Command::new(&sources.npm);
            // `pack` of a registry's package fetches its archive; no script of it is run.
            command.args(["pack", "--ignore-scripts", "--silent", "--pack-destination"]).arg(&folder);
            command.arg(format!("{wanted}@{}", package.version));
            run(command, &sources.npm, "Node.js with npm", package)?;
        }
        PackageSource::Pypi => {
            let mut command = pip(&sources.python);
            // Only wheels: building a source package would run its code.
            command.args(["download", "--no-deps", "--only-binary=:all:", "--retries", "2", "--dest"]);
            command.arg(&folder).arg(format!("{wanted}=={}", package.version));
            run(command, &sources.python, "Python 3 with pip", package)?;
        }
    }
    find(package, &folder)
}

pub(super) fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--no-input", "--quiet", "--disable-pip-version-check"]);
    command
}

/// Runs a program of a registry to its end.
pub(super) fn run(
    mut command: Command,
    program: &Path,
    what: &'static str,
    package: &Package,
) -> Result<(), InstallError> {
    let missing = |reason: String| InstallError::NoProgram {
        program: program.display().to_string(),
        what,
        package: package.name,
        reason,
    };
    let output = command.stdin(Stdio::null()).output().map_err(|error| missing(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("No module named pip") {
        return Err(missing("this Python has no pip".to_owned()));
    }
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(InstallError::Fetch { package: package.name, reason: last.trim().chars().take(300).collect() })
}

fn find(package: &Package, folder: &Path) -> Result<PathBuf, InstallError> {
    let (prefix, suffix) = package.archive_name();
    let is_wanted =
        |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(suffix));
    let mut entries = fs::read_dir(folder).map_err(at(folder))?.flatten();
    let found = entries.find(|entry| is_wanted(&entry.file_name())).map(|entry| entry.path());
    found.ok_or_else(|| InstallError::NoArchive { folder: folder.to_owned(), prefix, suffix })
}
