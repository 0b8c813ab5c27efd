//! Builds again whenever a source changes.

use std::path::Path;

use crate::ExitStatus;
use crate::folder_watcher::FolderWatcher;
use crate::registry::fingerprint;
use crate::terminal::{info, report_error};

/// Runs `build` now and after each change under `tools`, until the process is stopped.
pub(crate) fn run(tools: &Path, mut build: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<ExitStatus> {
    // Before the first build, so that no change is missed.
    let watcher = FolderWatcher::new(&[tools], &[]);
    loop {
        let built = fingerprint(tools).ok();
        // A build that cannot run, such as while a folder is moved, must not end the loop.
        if let Err(error) = build() {
            report_error(&error);
        }
        info(&format!("watching {} (Ctrl-C stops)\n", tools.display()));
        watcher.wait();
        while fingerprint(tools).ok() == built {
            watcher.wait();
        }
    }
}
