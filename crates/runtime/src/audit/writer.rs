//! The thread that writes the log.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use quarterdeck_contracts::{Commit, DiskError, Store, Table};
use serde_json::{Map, Value, json};

use super::AuditEvent;
use super::chain::ChainHead;
use super::gap::Gap;
use super::kept_lines::KeptLines;
use super::lines::MAX_LINE_BYTES;
use super::lost_lines::LostLines;
use super::position::SegmentPosition;
use super::segment::{Maintenance, SegmentSettings};
use super::watch::{AppendFile, LogFile};
use crate::clock::Clock;
use crate::envelope::timestamp;

/// How often an idle writer looks whether its file is as it left it.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// How often segments are looked for that are older than the log is kept.
const CUT_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long a value may be that stays in a line which would be too long with all of them, in bytes.
const MAX_KEPT_VALUE_BYTES: usize = 1 << 10;

/// What the thread that writes is told.
pub(super) enum Message {
    Event(AuditEvent),
    Flush(SyncSender<()>),
}

pub(super) struct Writer<F = File> {
    /// `None` while something else is at the path of the log.
    pub(super) disk: Option<LogFile<F>>,
    pub(super) path: PathBuf,
    pub(super) head: ChainHead,
    pub(super) node: String,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lost: LostLines,
    /// The copy in the store, where there is one.
    pub(super) kept_lines: Option<KeptLines>,
    /// The segment that lines are appended to.
    pub(super) segment: SegmentPosition,
    pub(super) settings: SegmentSettings,
    /// When a segment that could not be closed is tried again.
    pub(super) retry_rotation_at: Option<Duration>,
    /// The last segment that this process has recorded as cut.
    pub(super) last_cut: u64,
    /// Works on closed segments; absent in tests that do so themselves.
    pub(super) maintenance: Option<Maintenance>,
}

impl<F: AppendFile> Writer<F> {
    pub(super) fn run(mut self, receiver: &Receiver<Message>) {
        if self.kept_lines.is_some() {
            // What an earlier process did not hand over.
            self.keep_head();
        }
        let mut cut_at = self.clock.monotonic() + CUT_INTERVAL;
        loop {
            let message = match receiver.recv_timeout(WATCH_INTERVAL) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let before = self.head.seq;
            self.look_at_file();
            let mut waiting = Vec::new();
            // Events that were queued meanwhile share one update of the head.
            for message in message.into_iter().chain(std::iter::from_fn(|| receiver.try_recv().ok())) {
                self.take(message, &mut waiting);
            }
            if self.clock.monotonic() >= cut_at {
                cut_at = self.clock.monotonic() + CUT_INTERVAL;
                self.cut_expired();
            }
            if self.head.seq != before {
                self.keep_head();
            }
            waiting.into_iter().for_each(drop);
        }
    }

    /// A file that is cut, replaced or deleted while it is being written is noticed here, and the log says so.
    /// The chain goes on in the file that is there now, so that later events are recorded.
    fn look_at_file(&mut self) {
        let is_as_left = self.disk.as_mut().map(|disk| disk.is_as_left(&self.path));
        match is_as_left {
            Some(Ok(true)) => return,
            // The cause will be logged when a line is written.
            Some(Err(error)) => {
                tracing::warn!(error = %error, path = %self.path.display(), "audit trail could not be checked");
                return;
            }
            Some(Ok(false)) | None => {}
        }
        let was_usable = self.disk.is_some();
        let path = self.path.display();
        match LogFile::resume(self.disk.take(), &self.path, &self.head) {
            Ok(disk) => {
                tracing::error!(path = %path, "audit trail was changed by another process while it was being written");
                self.disk = Some(disk);
                let head = self.head.clone();
                self.begin_segment();
                self.append_gap(&Gap { expected: Some(&head), found: None });
            }
            Err(error) if was_usable => {
                tracing::error!(error = %error, path = %path, "audit trail was replaced; lines are lost until it is moved away");
            }
            Err(_) => {}
        }
    }

    fn take(&mut self, message: Message, waiting: &mut Vec<SyncSender<()>>) {
        match message {
            Message::Flush(done) => waiting.push(done),
            Message::Event(event) => {
                let mut fields = Map::new();
                fields.insert("event".into(), Value::from(&*event.event));
                fields.insert("time".into(), timestamp(event.time).into());
                fields.extend(event.fields);
                self.append(fields);
            }
        }
    }

    pub(super) fn append_gap(&mut self, gap: &Gap<'_>) {
        self.append(gap.fields(self.clock.now()));
    }

    pub(super) fn append(&mut self, fields: Map<String, Value>) {
        self.rotate_if_due();
        self.append_line(fields);
    }

    /// Adds a line to the segment as it is.
    pub(super) fn append_line(&mut self, mut fields: Map<String, Value>) -> bool {
        let lost = self.lost.take_untold();
        if lost > 0 {
            fields.insert("lost".into(), lost.into());
            tracing::error!(lost, path = %self.path.display(), "audit lines were lost");
        }
        let (mut line, mut next) = self.head.line(&fields);
        if line.len() > MAX_LINE_BYTES {
            (line, next) = self.head.line(&shortened(fields, line.len()));
        }
        line.push('\n');
        let written = match &mut self.disk {
            Some(disk) => disk.write(line.as_bytes()),
            None => Err(std::io::Error::other("something else stands where the trail was")),
        };
        match written {
            Ok(()) => {
                self.head = next;
                self.kept_lines.iter_mut().for_each(|kept| kept.add(self.head.seq, &line));
                true
            }
            Err(error) => {
                self.lost.put_back(lost);
                self.lost.add_one();
                let error = DiskError::explain(&error);
                tracing::error!(error, path = %self.path.display(), "cannot write the audit trail");
                false
            }
        }
    }

    pub(super) fn keep_head(&mut self) {
        let mut commit = self.head_row();
        let before = self.kept_lines.as_ref().map(KeptLines::kept);
        if let Some(kept) = &mut self.kept_lines {
            commit = kept.hand_over(commit, &self.path, self.head.seq, &*self.store);
        }
        if let Err(error) = self.store.queue(commit) {
            tracing::warn!(error = %error, "head of the audit trail was not stored");
            if let (Some(kept), Some(before)) = (&mut self.kept_lines, before) {
                kept.take_back(before);
            }
        }
    }

    pub(super) fn head_row(&self) -> Commit {
        Commit::default().put(Table::Audit, self.node.clone(), json!(self.head))
    }
}

/// The fields of a line without what makes it longer than any line may be.
fn shortened(fields: Map<String, Value>, bytes: usize) -> Map<String, Value> {
    let is_short = |value: &Value| value.to_string().len() <= MAX_KEPT_VALUE_BYTES;
    let mut kept: Map<String, Value> = fields.into_iter().filter(|(_, value)| is_short(value)).collect();
    kept.insert("omittedBytes".into(), bytes.into());
    kept
}

#[cfg(test)]
mod tests;
