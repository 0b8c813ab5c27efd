//! What this machine can hear and speak with.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::catalogue::{Component, PIPER_PACKAGES, PIPER_PYTHON, PIPER_VOICE};
use crate::synthesiser::{PiperFiles, Voice};

/// The engines that are there. Whether they work shows when they are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The folder for [`crate::Moonshine::load`]: the base model before the tiny one.
    pub hears: Option<PathBuf>,
    /// The best first.
    pub speaks: Vec<Voice>,
}

/// The interpreter of Piper's packages, as [`PIPER_PYTHON`] names it.
#[derive(Serialize, Deserialize)]
pub(crate) struct PiperPython {
    pub(crate) python: PathBuf,
}

/// The folder that engines are kept in: `$XDG_CACHE_HOME/quarterdeck/speech`, or the same under `~/.cache`.
///
/// The caller reads the environment.
pub fn cache_directory(xdg_cache_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let given = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = given(xdg_cache_home).or_else(|| Some(given(home)?.join(".cache")))?;
    Some(cache.join("quarterdeck").join("speech"))
}

/// Looks for engines: those of `cache`, and the programs that are on `search_path`, a value of `PATH`.
pub fn installed(cache: &Path, search_path: Option<&OsStr>) -> Installed {
    let moonshine = [Component::MoonshineBase, Component::MoonshineTiny];
    let mut speaks: Vec<_> = find_piper(cache).map(Voice::Piper).into_iter().collect();
    if cfg!(target_os = "macos") {
        speaks.extend(find_program("say", search_path).map(Voice::Say));
    }
    speaks.extend(find_program("espeak-ng", search_path).map(Voice::Espeak));
    Installed { hears: moonshine.into_iter().find_map(|model| model.find(cache)), speaks }
}

fn find_piper(cache: &Path) -> Option<PiperFiles> {
    let folder = Component::Piper.find(cache)?;
    let record: PiperPython = serde_json::from_slice(&fs::read(folder.join(PIPER_PYTHON)).ok()?).ok()?;
    Some(PiperFiles {
        python: record.python,
        packages: folder.join(PIPER_PACKAGES),
        voice: folder.join(PIPER_VOICE),
    })
}

/// A program by its full path: its process has no `PATH` to look it up in.
fn find_program(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = std::env::split_paths(search_path?);
    let mut candidates = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    candidates.find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
