//! Compiled code on disk, so that only the first start on a machine compiles the engine; and which handlers could be loaded, so that
//! only the first start with one loads it.
//!
//! A file is one program's own writing: it is named after what was compiled and by which compiler for which processor, begins
//! with the digest of the rest, and is taken only from a folder and a file that no other user can write to.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quarterdeck_contracts::sha256;
use wasmtime::{Engine, Module};

/// Length of a digest as text.
const DIGEST_BYTES: usize = 64;
/// How long code is kept that was not written again: that of releases that were replaced.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A folder for compiled code.
pub(crate) struct CodeCache(Option<PathBuf>);

impl CodeCache {
    /// `$QUARTERDECK_ENGINE_CACHE`, or a folder of this user's: `$CACHE_DIRECTORY` of a service, `$XDG_CACHE_HOME/quarterdeck` or `~/.cache/quarterdeck`.
    #[expect(
        clippy::disallowed_methods,
        reason = "inspectors are made without a configuration, and have the same cache"
    )]
    pub(crate) fn of_user() -> Self {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(folder) = variable("QUARTERDECK_ENGINE_CACHE") {
            return Self(Some(folder));
        }
        let folder = variable("CACHE_DIRECTORY")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("quarterdeck")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/quarterdeck")));
        Self(folder.map(|folder| folder.join("engine")))
    }

    #[cfg(test)]
    fn in_folder(folder: &Path) -> Self {
        Self(Some(folder.to_owned()))
    }

    /// The compiled module: from the cache if it is there, otherwise compiled, and kept if that can be.
    pub(crate) fn module(&self, engine: &Engine, wasm: &[u8]) -> Result<Module, String> {
        let path = self.0.as_ref().map(|folder| folder.join(file_name(engine, wasm)));
        let load = || path.as_deref().and_then(|path| load(engine, path));
        if let Some(module) = load() {
            return Ok(module);
        }
        // Of several processes that start at once, one compiles and the others wait for it.
        let _lock = path.as_deref().and_then(|path| lock(path).ok());
        if let Some(module) = load() {
            return Ok(module);
        }
        let code = engine
            .precompile_module(wasm)
            .map_err(|error| format!("the JavaScript engine cannot be compiled: {error:#}"))?;
        // Without a place to keep it, the next start compiles again; it works all the same.
        let _kept = path.as_deref().map(|path| keep(path, &code));
        deserialize(engine, &code)
            .map_err(|error| format!("the JavaScript engine cannot be loaded: {error:#}"))
    }

    /// Whether a handler with this fingerprint could be loaded before.
    pub(crate) fn remembers(&self, fingerprint: &str) -> bool {
        self.mark(fingerprint).is_some_and(|mark| is_ours_alone(&mark))
    }

    /// Remembers that it could. Without a place to write that down, the next start finds it out again.
    pub(crate) fn remember(&self, fingerprint: &str) {
        let Some(mark) = self.mark(fingerprint) else { return };
        let _ = mark.parent().map(create_folder).transpose().and_then(|_| File::create(&mark));
    }

    fn mark(&self, fingerprint: &str) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join(format!("{}.loads", &fingerprint[..32])))
    }
}

/// Names everything that the code depends on.
fn file_name(engine: &Engine, wasm: &[u8]) -> String {
    let mut compiler = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut compiler);
    format!("{}-{:016x}.code", &sha256(wasm)[..32], compiler.finish())
}

fn load(engine: &Engine, path: &Path) -> Option<Module> {
    if !is_ours_alone(path.parent()?) || !is_ours_alone(path) {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let (digest, code) = bytes.split_at_checked(DIGEST_BYTES)?;
    if sha256(code).as_bytes() != digest {
        return None;
    }
    deserialize(engine, code).ok()
}

#[expect(
    unsafe_code,
    reason = "the bytes are what `precompile_module` of this very version wrote; see the module"
)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: the caller has them from `precompile_module`, just now or through a file that only this user can write and whose
    // digest fits. wasmtime itself refuses those of another version or for another processor.
    unsafe { Module::deserialize(engine, code) }
}

/// Whether no other user can change it.
#[cfg(unix)]
fn is_ours_alone(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    fs::symlink_metadata(path).is_ok_and(|found| {
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        is_ours && !found.is_symlink() && found.mode() & WRITABLE_BY_OTHERS == 0
    })
}

#[cfg(not(unix))]
fn is_ours_alone(_: &Path) -> bool {
    false
}

/// Waits until no other process compiles what belongs there. The lock ends with the file that is returned.
fn lock(path: &Path) -> io::Result<File> {
    create_folder(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    let file = File::create(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file whole or not at all.
fn keep(path: &Path, code: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.new", std::process::id()));
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(sha256(code).as_bytes())?;
        file.write_all(code)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    remove_old(path);
    written
}

/// Removes what has not been written for a month, beside the file that was written now. What is missed costs disk, and no more.
fn remove_old(written: &Path) {
    let Some(entries) = written.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if entry.path() != written && age.is_some_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("quarterdeck-code-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            Self(folder)
        }

        fn files(&self) -> Vec<PathBuf> {
            let found = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
            found.filter(|path| path.extension().is_some_and(|extension| extension == "code")).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn code_is_kept_once_and_taken_again() {
        let folder = Folder::new("kept");
        let (cache, engine) = (CodeCache::in_folder(&folder.0), Engine::default());
        cache.module(&engine, MODULE).unwrap();
        let [file] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
        assert!(load(&engine, file).is_some());
        assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn file_that_was_changed_or_that_others_can_write_is_not_taken() {
        let folder = Folder::new("changed");
        let (cache, engine) = (CodeCache::in_folder(&folder.0), Engine::default());
        cache.module(&engine, MODULE).unwrap();
        let file = folder.files().remove(0);
        let whole = fs::read(&file).unwrap();
        for changed in [&whole[..whole.len() - 1], &whole[..10], &[]] {
            fs::write(&file, changed).unwrap();
            assert!(load(&engine, &file).is_none());
        }
        let mut flipped = whole.clone();
        flipped[DIGEST_BYTES + 5] ^= 1;
        fs::write(&file, &flipped).unwrap();
        assert!(load(&engine, &file).is_none());
        // It is replaced by a good one.
        cache.module(&engine, MODULE).unwrap();
        assert!(load(&engine, &file).is_some());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(load(&engine, &file).is_none());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(load(&engine, &file).is_none());
    }

    #[test]
    fn code_of_releases_that_were_replaced_goes_after_a_month() {
        let folder = Folder::new("old");
        fs::create_dir(&folder.0).unwrap();
        let (old, recent) = (folder.0.join("old.code"), folder.0.join("recent.code"));
        for path in [&old, &recent] {
            fs::write(path, "").unwrap();
        }
        let long_ago = fs::metadata(&old).unwrap().modified().unwrap() - KEPT_FOR - Duration::from_secs(60);
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        CodeCache::in_folder(&folder.0).module(&Engine::default(), MODULE).unwrap();
        assert!(!old.exists() && recent.exists());
    }

    #[test]
    fn handler_that_could_be_loaded_is_remembered_where_no_other_user_can_write() {
        let folder = Folder::new("remembered");
        let cache = CodeCache::in_folder(&folder.0);
        let (known, unknown) = ("1".repeat(64), "2".repeat(64));
        cache.remember(&known);
        assert!(cache.remembers(&known) && !cache.remembers(&unknown));
        let mark = cache.mark(&known).unwrap();
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!cache.remembers(&known));
        assert!(!CodeCache(None).remembers(&known));
    }

    #[test]
    fn no_folder_is_no_obstacle() {
        CodeCache(None).module(&Engine::default(), MODULE).unwrap();
        CodeCache::in_folder(Path::new("/proc/nowhere")).module(&Engine::default(), MODULE).unwrap();
    }
}
