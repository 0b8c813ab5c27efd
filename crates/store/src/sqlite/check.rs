//! Whether a file is whole, looked at before anything in it is believed.
//!
//! The engine checks the structure of every page; the sum of every row says whether it is what was written. A small
//! file is checked before it is used. A large one is checked while it is used, and damage that is found then stops
//! every further write.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quarterdeck_contracts::Table;
use rusqlite::{Connection, InterruptHandle};

use super::fault::{self, Fault};
use super::health::Health;
use super::open::{OpenError, connect, engine_error, leave_log_alone};
use super::rows::{self, RawRow};
use super::schema;

/// How long opening waits for the check, unless it is told otherwise. Half a second is enough for a hundred megabytes
/// and more that the system has in memory, and a start must not take longer for it.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// How many faults of the structure are told.
const MAX_TOLD: u32 = 3;

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    Sound,
    /// Pages that do not belong together, or rows that are not what was written. One such row is reason enough to
    /// believe nothing: where its key is what was damaged, another row seems not to be there.
    Damaged(String),
    /// It could not be finished, which is no sign of damage.
    Unfinished(String),
}

/// A check that is under way.
pub(super) struct Check {
    stop: Stop,
    thread: JoinHandle<()>,
    finding: Receiver<Finding>,
}

/// Ends a check: the statement that runs, and whatever would come after it.
struct Stop {
    interrupt: InterruptHandle,
    is_asked: Arc<AtomicBool>,
}

impl Check {
    /// Begins to check a file on a thread of its own.
    pub(super) fn start(path: &Path, busy: Duration) -> Result<Self, OpenError> {
        let connect = || connect(path, busy).and_then(|new| leave_log_alone(&new, true).map(|()| new));
        let connection = connect().map_err(|source| engine_error(source, path))?;
        let stop = Stop { interrupt: connection.get_interrupt_handle(), is_asked: Arc::default() };
        let is_stopped = Arc::clone(&stop.is_asked);
        let (answer, finding) = sync_channel(1);
        let of = path.to_owned();
        let thread = thread::Builder::new().name("store-check".into()).spawn(move || {
            let found = look(&connection, &is_stopped).unwrap_or_else(|error| match fault::of(&error, &of) {
                Fault::Damage => Finding::Damaged(error.to_string()),
                _ => Finding::Unfinished(error.to_string()),
            });
            drop(connection);
            drop(answer.send(found));
        });
        match thread {
            Ok(thread) => Ok(Self { stop, thread, finding }),
            Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
        }
    }

    /// What was found within a time; `None` while it is still under way.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Finding> {
        match self.finding.recv_timeout(timeout) {
            Ok(found) => Some(found),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Finding::Unfinished("its thread ended".into())),
        }
    }

    /// Lets it go on beside the store, and tells what it finds.
    pub(super) fn go_on(self, health: Arc<Health>) -> std::io::Result<Background> {
        let Self { stop, thread, finding } = self;
        let telling = thread::Builder::new().name("store-check-end".into()).spawn(move || {
            if let Ok(found) = finding.recv() {
                tell(&found, &health);
            }
            drop(thread.join());
        })?;
        Ok(Background { stop, telling })
    }
}

/// A check that goes on beside the store.
pub(super) struct Background {
    stop: Stop,
    telling: JoinHandle<()>,
}

impl Background {
    /// Ends it, whatever it has found.
    pub(super) fn stop(self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.interrupt.interrupt();
        if self.telling.thread().id() != thread::current().id() {
            drop(self.telling.join());
        }
    }
}

/// Tells the operator what a check came to.
pub(super) fn tell(found: &Finding, health: &Health) {
    let path = health.path().display();
    match found {
        Finding::Sound => {}
        Finding::Damaged(what) => health.mark_damaged(what),
        Finding::Unfinished(why) => {
            tracing::warn!(path = %path, reason = why, "the store was not checked to its end");
        }
    }
}

/// Looks through a whole file.
fn look(connection: &Connection, is_stopped: &AtomicBool) -> rusqlite::Result<Finding> {
    let structure = faults_of_structure(connection)?;
    if !structure.is_empty() {
        return Ok(Finding::Damaged(structure.join("; ")));
    }
    let mut damaged = BTreeMap::<&'static str, u64>::new();
    let mut newest = 0;
    let whole = rows::each(connection, schema::version(connection)?, |row| {
        if is_stopped.load(Ordering::Acquire) {
            return ControlFlow::Break(());
        }
        newest = newest.max(row.map_or(0, RawRow::version));
        if !row.is_some_and(RawRow::is_sound) {
            let known = row.and_then(|row| Table::ALL.iter().find(|table| table.as_str() == row.table()));
            *damaged.entry(known.map_or("an unknown table", |table| table.as_str())).or_default() += 1;
        }
        ControlFlow::Continue(())
    })?;
    if whole.is_break() {
        return Ok(Finding::Unfinished("the store was closed".into()));
    }
    if newest > rows::last_version(connection)? {
        return Ok(Finding::Damaged("the number of the last commit is behind that of a row".into()));
    }
    let told: Vec<_> = damaged.iter().map(|(table, count)| format!("{count} of `{table}`")).collect();
    if told.is_empty() {
        return Ok(Finding::Sound);
    }
    Ok(Finding::Damaged(format!("rows are not what was written ({})", told.join(", "))))
}

/// What the engine says. The full check costs little more than the quick one here, and it also finds keys that are
/// out of order, behind which rows would be missing without a word.
fn faults_of_structure(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_TOLD})"))?;
    let told: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(told.into_iter().filter(|line| line != "ok").collect())
}
