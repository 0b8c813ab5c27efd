//! Integrity checks.
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
use super::open::{OpenError, connect, engine_error, keep_log_on_close};
use super::rows::{self, RawRow};
use super::schema;

/// The default of [`super::SqliteOptions::check_timeout`]: enough for a hundred megabytes and more that the system has
/// in memory, and a start must not take longer for it.
pub(super) const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

const MAX_REPORTED_FAULTS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    Sound,
    /// Pages that do not belong together, or rows that are not what was written. One such row condemns the file: where
    /// its key is what was damaged, another row seems not to be there.
    Damaged(String),
    /// It could not be finished, which is no sign of damage.
    Unfinished(String),
}

pub(super) struct Check {
    stop: StopHandle,
    thread: JoinHandle<()>,
    finding: Receiver<Finding>,
}

/// Stops a check: the running statement, and the loop around it.
struct StopHandle {
    interrupt: InterruptHandle,
    is_requested: Arc<AtomicBool>,
}

impl Check {
    /// Checks a file on a thread of its own.
    pub(super) fn start(path: &Path, busy: Duration) -> Result<Self, OpenError> {
        let connect = || connect(path, busy).and_then(|new| keep_log_on_close(&new, true).map(|()| new));
        let connection = connect().map_err(|source| engine_error(source, path))?;
        let stop = StopHandle { interrupt: connection.get_interrupt_handle(), is_requested: Arc::default() };
        let is_stopped = Arc::clone(&stop.is_requested);
        let (answer, finding) = sync_channel(1);
        let of = path.to_owned();
        let thread = thread::Builder::new().name("store-check".into()).spawn(move || {
            let found = check_file(&connection, &is_stopped).unwrap_or_else(|error| {
                match fault::classify(&error, &of) {
                    Fault::Damage => Finding::Damaged(error.to_string()),
                    _ => Finding::Unfinished(error.to_string()),
                }
            });
            drop(connection);
            drop(answer.send(found));
        });
        match thread {
            Ok(thread) => Ok(Self { stop, thread, finding }),
            Err(source) => Err(OpenError::Io { path: path.to_owned(), source }),
        }
    }

    /// `None` while it is still running.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Finding> {
        match self.finding.recv_timeout(timeout) {
            Ok(found) => Some(found),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Finding::Unfinished("its thread ended".into())),
        }
    }

    /// Lets it run beside the store, and reports what it finds.
    pub(super) fn continue_in_background(self, health: Arc<Health>) -> std::io::Result<Background> {
        let Self { stop, thread, finding } = self;
        let reporter = thread::Builder::new().name("store-check-end".into()).spawn(move || {
            if let Ok(found) = finding.recv() {
                report(&found, &health);
            }
            drop(thread.join());
        })?;
        Ok(Background { stop, reporter })
    }
}

/// A check that runs beside the open store.
pub(super) struct Background {
    stop: StopHandle,
    reporter: JoinHandle<()>,
}

impl Background {
    pub(super) fn stop(self) {
        self.stop.is_requested.store(true, Ordering::Release);
        self.stop.interrupt.interrupt();
        if self.reporter.thread().id() != thread::current().id() {
            drop(self.reporter.join());
        }
    }
}

pub(super) fn report(found: &Finding, health: &Health) {
    let path = health.path().display();
    match found {
        Finding::Sound => {}
        Finding::Damaged(what) => health.mark_damaged(what),
        Finding::Unfinished(why) => {
            tracing::warn!(path = %path, reason = why, "store check did not finish");
        }
    }
}

fn check_file(connection: &Connection, is_stopped: &AtomicBool) -> rusqlite::Result<Finding> {
    let structure = structure_faults(connection)?;
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
    let faults: Vec<_> = damaged.iter().map(|(table, count)| format!("{count} of `{table}`")).collect();
    if faults.is_empty() {
        return Ok(Finding::Sound);
    }
    Ok(Finding::Damaged(format!("rows are not what was written ({})", faults.join(", "))))
}

/// The full check costs little more than the quick one here, and it also finds keys that are out of order, behind which
/// rows would silently be missing.
fn structure_faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_REPORTED_FAULTS})"))?;
    let faults: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(faults.into_iter().filter(|line| line != "ok").collect())
}
