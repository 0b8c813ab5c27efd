//! Waits for changes of files, and for the moment at which a save is complete.
//!
//! Events only say when to look: what has changed is found by comparing fingerprints. So an event that is lost costs a
//! moment, and a file system without events is looked at in intervals.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::terminal::warn;

/// Editors write a file in several steps; a pause this long means that they are done.
const DEBOUNCE: Duration = Duration::from_millis(80);
/// How long a file may stay open for writing without a change before it is taken as it is.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long changes may go on before they are looked at all the same.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often files are looked at without an event, in case one was lost.
const RECHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The same where there are no events.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Files that are known to be open for writing. More than these are waited for like any other change.
const MAX_OPEN_FILES: usize = 256;

/// Watches folders with all that is in them, and single files.
pub(crate) struct FolderWatcher {
    pending: Arc<Pending>,
    /// Events stop when it is dropped. `None` where there are none.
    watcher: Option<RecommendedWatcher>,
}

#[derive(Default)]
struct Pending {
    changes: Mutex<Changes>,
    changed: Condvar,
}

#[derive(Default)]
struct Changes {
    last: Option<Instant>,
    open: BTreeSet<PathBuf>,
}

impl FolderWatcher {
    /// Begins to watch. What cannot be watched by events is looked at in intervals, and a message says so.
    pub(crate) fn new(folders: &[&Path], files: &[&Path]) -> Self {
        let pending = Arc::new(Pending::default());
        let watcher = watch(folders, files, pending.clone());
        let watcher = watcher.inspect_err(|error| {
            warn(&format!(
                "changes of files are not reported here ({error}); they are looked for every {} ms",
                POLL_INTERVAL.as_millis()
            ));
        });
        Self { pending, watcher: watcher.ok() }
    }

    /// Waits until files may have changed and no save is under way. It returns without a change, too, every now and then.
    pub(crate) fn wait(&self) {
        let interval = if self.watcher.is_some() { RECHECK_INTERVAL } else { POLL_INTERVAL };
        let changes = self.pending.lock();
        let waiting =
            self.pending.changed.wait_timeout_while(changes, interval, |changes| changes.last.is_none());
        let (mut changes, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        while let Some(left) = changes.time_to_settle(since) {
            let waited = self.pending.changed.wait_timeout(changes, left);
            (changes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *changes = Changes::default();
    }
}

fn watch(folders: &[&Path], files: &[&Path], pending: Arc<Pending>) -> notify::Result<RecommendedWatcher> {
    // A file is often replaced by another one of its name, so its folder is watched.
    let parents: BTreeSet<_> = files.iter().map(|file| parent(file)).collect();
    let parents: Vec<_> =
        parents.into_iter().filter(|parent| parent.is_dir() && !is_inside(parent, folders)).collect();
    let neighbours = Neighbours::of(files, &parents);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error is about a single path, and the next look finds what it hides.
        if let Ok(event) = event
            && !neighbours.are_all_of(&event)
        {
            pending.note(&event);
        }
    })?;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        watcher.watch(folder, RecursiveMode::Recursive)?;
    }
    for parent in parents {
        watcher.watch(parent, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// The files beside those that are watched. A log that is written there all the time must not look like a save that
/// never ends.
struct Neighbours {
    /// As they were named, and as the system may name them.
    folders: Vec<PathBuf>,
    watched: Vec<OsString>,
}

impl Neighbours {
    fn of(files: &[&Path], parents: &[&Path]) -> Self {
        let canonical = parents.iter().filter_map(|parent| parent.canonicalize().ok());
        Self {
            folders: parents.iter().map(|&parent| parent.to_owned()).chain(canonical).collect(),
            watched: files.iter().filter_map(|file| file.file_name()).map(ToOwned::to_owned).collect(),
        }
    }

    fn are_all_of(&self, event: &Event) -> bool {
        let is_neighbour = |path: &PathBuf| {
            let is_beside =
                path.parent().is_some_and(|parent| self.folders.iter().any(|folder| folder == parent));
            is_beside && !path.file_name().is_some_and(|name| self.watched.iter().any(|file| file == name))
        };
        // Without a path, anything may have changed.
        !event.paths.is_empty() && event.paths.iter().all(is_neighbour)
    }
}

fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_inside(path: &Path, folders: &[&Path]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: &Event) {
        let mut changes = self.lock();
        if changes.note(event) {
            changes.last = Some(Instant::now());
            self.changed.notify_all();
        }
    }
}

impl Changes {
    /// Whether an event is about a change. Only where closing is reported, a file that is written to counts as open.
    fn note(&mut self, event: &Event) -> bool {
        match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                // A file that was opened for writing and not written to has not changed.
                let closed = event.paths.iter().filter(|path| self.open.remove(*path)).count();
                closed > 0
            }
            EventKind::Access(_) => false,
            EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => {
                let room = MAX_OPEN_FILES.saturating_sub(self.open.len());
                self.open.extend(event.paths.iter().take(room).cloned());
                true
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                self.open.retain(|path| !event.paths.contains(path));
                true
            }
            _ => true,
        }
    }

    /// How long to wait for the end of what is being saved; `None` when it is over, or nothing is.
    fn time_to_settle(&self, since: Instant) -> Option<Duration> {
        let quiet = self.last?.elapsed();
        let pause = if self.open.is_empty() { DEBOUNCE } else { WRITE_TIMEOUT };
        let left = pause.checked_sub(quiet).filter(|left| !left.is_zero())?;
        let until_timeout = SETTLE_TIMEOUT.checked_sub(since.elapsed()).filter(|left| !left.is_zero())?;
        Some(left.min(until_timeout))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use notify::event::{CreateKind, DataChange, RemoveKind};
    use quarterdeck_testkit::tree;

    use super::*;

    fn event(kind: EventKind) -> Event {
        Event::new(kind).add_path("tools/a/handler.js".into())
    }

    #[test]
    fn a_file_that_is_still_open_for_writing_is_waited_for() {
        let mut changes = Changes::default();
        let is_linux = cfg!(target_os = "linux");
        assert!(changes.note(&event(EventKind::Create(CreateKind::File))));
        assert!(changes.note(&event(EventKind::Modify(ModifyKind::Data(DataChange::Any)))));
        assert_eq!(changes.open.len(), usize::from(is_linux));
        assert_eq!(changes.note(&event(EventKind::Access(AccessKind::Close(AccessMode::Write)))), is_linux);
        assert!(changes.open.is_empty());
        assert!(
            !changes.note(&event(EventKind::Access(AccessKind::Close(AccessMode::Write)))),
            "nothing was written"
        );
        assert!(!changes.note(&event(EventKind::Access(AccessKind::Open(AccessMode::Read)))), "a read");
    }

    #[test]
    fn a_file_that_was_removed_while_it_was_written_is_not_waited_for() {
        let mut changes = Changes::default();
        changes.note(&event(EventKind::Modify(ModifyKind::Data(DataChange::Any))));
        assert!(changes.note(&event(EventKind::Remove(RemoveKind::File))));
        assert!(changes.open.is_empty());
    }

    #[test]
    fn a_save_in_two_steps_is_reported_when_it_is_complete() {
        let files = tree("//- tools/a/handler.js\nold\n");
        let path = files.path().join("tools/a/handler.js");
        let watcher = FolderWatcher::new(&[&files.path().join("tools")], &[]);
        let mut open = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        open.write_all(b"first").unwrap();
        let writer = std::thread::spawn(move || {
            // Longer than the pause that ends other changes.
            std::thread::sleep(DEBOUNCE * 4);
            open.write_all(b" second").unwrap();
        });
        let mut looks = 0;
        // Without events there is a look in intervals, which may come between the steps.
        loop {
            watcher.wait();
            looks += 1;
            let text = fs::read_to_string(&path).unwrap();
            if text == "first second" {
                break;
            }
            assert!(watcher.watcher.is_none() || !cfg!(target_os = "linux"), "half of a save: {text}");
            assert!(looks < 1_000, "the save is never reported");
        }
        writer.join().unwrap();
    }

    #[test]
    fn a_file_beside_the_folders_is_watched_through_its_folder() {
        let files = tree("//- quarterdeck.toml\n[page]\n");
        let file = files.path().join("quarterdeck.toml");
        let watcher = FolderWatcher::new(&[], &[&file]);
        let other = files.path().join("next.toml");
        fs::write(&other, "new").unwrap();
        fs::rename(&other, &file).unwrap();
        watcher.wait();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_log_beside_a_watched_file_is_no_change() {
        let files = tree("//- quarterdeck.toml\n[page]\n");
        let neighbours = Neighbours::of(&[&files.path().join("quarterdeck.toml")], &[files.path()]);
        let written = |name: &str| {
            Event::new(EventKind::Modify(ModifyKind::Data(DataChange::Any))).add_path(files.path().join(name))
        };
        assert!(neighbours.are_all_of(&written("serve.log")));
        assert!(!neighbours.are_all_of(&written("quarterdeck.toml")));
        assert!(
            !neighbours.are_all_of(&written("serve.log").add_path(files.path().join("quarterdeck.toml")))
        );
        assert!(
            !neighbours.are_all_of(&written("tools/greet/guide.md")),
            "another folder is watched for itself"
        );
        assert!(!neighbours.are_all_of(&Event::new(EventKind::Any)), "an event that says nothing");
    }

    #[test]
    fn a_log_that_is_written_all_the_time_holds_up_no_reload() {
        let files = tree("//- quarterdeck.toml\n[page]\n//- tools/a/guide.md\nold\n");
        let watcher =
            FolderWatcher::new(&[&files.path().join("tools")], &[&files.path().join("quarterdeck.toml")]);
        let mut log = fs::File::create(files.path().join("serve.log")).unwrap();
        let (stop, is_stopped) = std::sync::mpsc::channel::<()>();
        let logger = std::thread::spawn(move || {
            while is_stopped.recv_timeout(DEBOUNCE / 4) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                log.write_all(b"a line\n").unwrap();
            }
        });
        fs::write(files.path().join("tools/a/guide.md"), "new").unwrap();
        let began = Instant::now();
        watcher.wait();
        assert!(began.elapsed() < SETTLE_TIMEOUT, "the log was taken for a save");
        drop(stop);
        logger.join().unwrap();
    }
}
