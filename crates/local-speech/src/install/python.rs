//! Puts Piper's packages into a folder of their own, for one interpreter.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fetch::{pip, run};
use super::{InstallError, InstallSources};
use crate::catalogue::Package;

/// Installs a wheel with what it depends on. A folder instead of a virtual environment: Debian's Python has no `venv` by
/// itself, and a folder can be renamed.
pub(super) fn install_wheel(
    package: &Package,
    wheel: &Path,
    sources: &InstallSources,
    folder: &Path,
) -> Result<(), InstallError> {
    let mut command = pip(&sources.python);
    command.args(["install", "--only-binary=:all:", "--target"]).arg(folder);
    if let Some(archives) = &sources.archives {
        command.arg("--no-index").arg("--find-links").arg(archives);
    }
    command.arg(wheel);
    run(command, &sources.python, "Python 3 with pip", package)
}

/// The interpreter itself, which a name on `PATH` may only lead to. It has to be able to import Piper.
pub(super) fn interpreter(python: &Path, packages: &Path) -> Result<PathBuf, InstallError> {
    const SCRIPT: &str = "import sys; sys.path.insert(0, sys.argv[1]); import piper; print(sys.executable)";
    let failed = |reason: String| InstallError::Python { python: python.to_owned(), reason };
    let mut command = Command::new(python);
    command.args(["-I", "-c", SCRIPT]).arg(packages).stdin(Stdio::null());
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(failed(stderr.lines().last().unwrap_or("it gave no reason").chars().take(300).collect()));
    }
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if path.is_absolute() { Ok(path) } else { Err(failed("it does not say where it is".to_owned())) }
}
