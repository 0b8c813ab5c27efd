//! Builds again whenever a source changes.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;
use notify::{Event, EventKind, RecursiveMode, Watcher};

use crate::Verdict;
use crate::terminal::{complain, say};

/// Editors write a file in several steps; a pause this long means that they are done.
const PAUSE: Duration = Duration::from_millis(80);

/// Runs `build` now and after each change under `tools`, until the process is stopped.
pub(crate) fn run(
    tools: &Path,
    artifact: &Path,
    mut build: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Verdict> {
    // One waiting note is enough: it says that something changed, and the build looks at everything.
    let (changed, changes) = mpsc::sync_channel(1);
    let artifact = artifact.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_about_sources(&event, &artifact)) {
            let _ = changed.try_send(());
        }
    })?;
    watcher
        .watch(tools, RecursiveMode::Recursive)
        .with_context(|| format!("cannot watch {}", tools.display()))?;
    loop {
        // A build that cannot run (a folder that is just being moved, say) must not end the watching.
        if let Err(error) = build() {
            complain(&error);
        }
        say(&format!("watching {} (Ctrl-C stops)\n", tools.display()));
        if changes.recv().is_err() {
            anyhow::bail!("the file watcher stopped; start the command again");
        }
        loop {
            match changes.recv_timeout(PAUSE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
}

/// Our own writing of the artifact, and anybody's reading, is not a change of the sources.
fn is_about_sources(event: &Event, artifact: &Path) -> bool {
    let is_artifact = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        Some(name.as_ref()) == artifact.file_name().and_then(|name| name.to_str())
            || name.starts_with(".tool_registry.")
    };
    !matches!(event.kind, EventKind::Access(_)) && !event.paths.iter().all(|path| is_artifact(path))
}
