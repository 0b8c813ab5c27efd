//! A node whose clock is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that sets a program's clock; nothing where it is not installed, which is said.
pub(crate) fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let library = found.find(|path| path.exists());
    if library.is_none() {
        #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
        let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
        assert!(!required, "libfaketime is required here; `scripts/faketime` installs it");
        #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
        {
            eprintln!("SKIPPED: libfaketime is not installed; `scripts/faketime` installs it");
        }
    }
    library
}

/// Has a program read its clock from a file. Time that is measured, rather than read, stays what it is.
pub(crate) fn follow(command: &mut Command, library: &Path, file: &Path) {
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
}

/// Sets the clock of such a program so many seconds from the real one.
pub(crate) fn set(file: &Path, seconds: i64) {
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{seconds:+}s\n")).unwrap();
    std::fs::rename(next, file).unwrap();
}
