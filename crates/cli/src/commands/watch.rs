//! Builds again whenever a source changes.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;
use notify::{Event, EventKind, RecursiveMode, Watcher};

use crate::ExitStatus;
use crate::terminal::{info, report_error};

/// Editors write a file in several steps; a pause this long means that they are done.
const DEBOUNCE: Duration = Duration::from_millis(80);

/// Runs `build` now and after each change under `tools`, until the process is stopped.
pub(crate) fn run(
    tools: &Path,
    artifact: &Path,
    mut build: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    // One pending notification is enough: every build reads all sources.
    let (changed, changes) = mpsc::sync_channel(1);
    let artifact = artifact.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_source_change(&event, &artifact)) {
            let _ = changed.try_send(());
        }
    })?;
    watcher
        .watch(tools, RecursiveMode::Recursive)
        .with_context(|| format!("cannot watch {}", tools.display()))?;
    loop {
        // A build that cannot run, such as while a folder is moved, must not end the loop.
        if let Err(error) = build() {
            report_error(&error);
        }
        info(&format!("watching {} (Ctrl-C stops)\n", tools.display()));
        if changes.recv().is_err() {
            anyhow::bail!("the file watcher stopped; start the command again");
        }
        loop {
            match changes.recv_timeout(DEBOUNCE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
}

/// Reads, and our own writes of the artifact, change no source.
fn is_source_change(event: &Event, artifact: &Path) -> bool {
    let is_artifact = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        Some(name.as_ref()) == artifact.file_name().and_then(|name| name.to_str())
            || name.starts_with(".tool_registry.")
    };
    !matches!(event.kind, EventKind::Access(_)) && !event.paths.iter().all(|path| is_artifact(path))
}
