//! Installs engines into the cache, from the packages of the [catalogue](crate::Component).
//!
//! npm and pip fetch the packages, because they know the user's registries. Of an archive only the files of the catalogue
//! are taken, by their names, so that no path in it decides where anything is written. A component is complete and checked
//! before it appears under its name.

mod archive;
mod fetch;
mod python;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::{Component, Contents, PIPER_PACKAGES, PIPER_PYTHON, Package};
use crate::installed::PiperPython;
use crate::moonshine::{LoadError, Moonshine, MoonshineSettings};

/// Programs and folders that an installation may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallSources {
    /// A Python interpreter with pip.
    pub python: PathBuf,
    pub npm: PathBuf,
    /// Archives that were fetched before; then nothing is fetched.
    pub archives: Option<PathBuf>,
}

impl Default for InstallSources {
    /// What `PATH` has.
    fn default() -> Self {
        let python = if cfg!(windows) { "python" } else { "python3" };
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        Self { python: python.into(), npm: npm.into(), archives: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// It is there already; nothing is done.
    AlreadyInstalled,
    /// A package is fetched. This is where the time goes.
    Fetching(Package),
    /// What is taken from a package is compared with its digest and written.
    Unpacking(Package),
    /// pip fetches and installs what a program depends on.
    InstallingDependencies(Package),
    /// The engine is loaded once.
    Checking,
    Installed,
}

/// Why something was not installed. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    #[error(
        "`{program}` is needed to fetch `{package}` and does not run ({reason}): install {what}, or fetch the archive \
         elsewhere and give its folder with --from"
    )]
    NoProgram { program: String, what: &'static str, package: &'static str, reason: String },
    #[error(
        "`{package}` could not be fetched ({reason}): check the network, or fetch the archive elsewhere and give its \
         folder with --from"
    )]
    Fetch { package: &'static str, reason: String },
    #[error("{} has no archive whose name begins with `{prefix}` and ends with `{suffix}`", folder.display())]
    NoArchive { folder: PathBuf, prefix: String, suffix: &'static str },
    #[error("{} is not an archive that can be read ({reason}): fetch it again", path.display())]
    Archive { path: PathBuf, reason: String },
    #[error("`{file}` of `{package}` has the digest {found} instead of {expected}: do not use it")]
    Digest { package: &'static str, file: String, expected: &'static str, found: String },
    #[error("the Python of `{}` cannot run Piper ({reason})", python.display())]
    Python { python: PathBuf, reason: String },
    #[error(transparent)]
    Unusable(#[from] LoadError),
    #[error("{} exists and is incomplete: run `quarterdeck speech remove {name}` first", path.display())]
    Occupied { path: PathBuf, name: &'static str },
    #[error("{} cannot be read or written: check its permissions and the free space", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Installs a component and returns its folder. One that is there is left alone. Blocks, for minutes.
pub fn install(
    component: Component,
    cache: &Path,
    sources: &InstallSources,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, InstallError> {
    if let Some(folder) = component.find(cache) {
        progress(Progress::AlreadyInstalled);
        return Ok(folder);
    }
    let target = component.folder(cache);
    if target.exists() {
        return Err(InstallError::Occupied { path: target, name: component.name() });
    }
    fs::create_dir_all(cache).map_err(at(cache))?;
    let staging = tempfile::Builder::new().prefix(".installing-").tempdir_in(cache).map_err(at(cache))?;
    // Moonshine is called as its folder is.
    let staged = staging.path().join(component.name());
    fs::create_dir(&staged).map_err(at(&staged))?;
    for package in component.packages() {
        progress(Progress::Fetching(*package));
        let archive = fetch::fetch(package, sources, staging.path())?;
        progress(Progress::Unpacking(*package));
        match package.contents {
            Contents::Files(files) => archive::take(package, &archive, files, &staged)?,
            Contents::Wheels(digests) => {
                archive::check(package, &archive, digests)?;
                progress(Progress::InstallingDependencies(*package));
                python::install_wheel(package, &archive, sources, &staged.join(PIPER_PACKAGES))?;
            }
        }
    }
    progress(Progress::Checking);
    check(component, sources, &staged)?;
    match fs::rename(&staged, &target) {
        Ok(()) => progress(Progress::Installed),
        // Another installation was faster.
        Err(_) if component.find(cache).is_some() => progress(Progress::AlreadyInstalled),
        Err(source) => return Err(InstallError::File { path: target, source }),
    }
    Ok(target)
}

/// Loads what was installed, once.
fn check(component: Component, sources: &InstallSources, staged: &Path) -> Result<(), InstallError> {
    match component {
        Component::MoonshineBase | Component::MoonshineTiny => {
            Moonshine::load(staged, MoonshineSettings::default())?;
        }
        Component::Piper => {
            let python = python::interpreter(&sources.python, &staged.join(PIPER_PACKAGES))?;
            let path = staged.join(PIPER_PYTHON);
            let record = serde_json::to_vec(&PiperPython { python }).map_err(io::Error::other);
            record.and_then(|record| fs::write(&path, record)).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Removes a component. Says whether there was one.
pub fn remove(component: Component, cache: &Path) -> io::Result<bool> {
    let folder = component.folder(cache);
    if !folder.exists() {
        return Ok(false);
    }
    // Renamed first, so that half a component is never found.
    let doomed = tempfile::Builder::new().prefix(".removing-").tempdir_in(cache)?;
    fs::rename(&folder, doomed.path().join(component.name()))?;
    doomed.close()?;
    Ok(true)
}

fn at(path: &Path) -> impl Fn(io::Error) -> InstallError + '_ {
    move |source| InstallError::File { path: path.to_owned(), source }
}
