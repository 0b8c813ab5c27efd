//! The audit log on disk: one writer thread, one file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, DiskError, Store, Table};
use serde_json::{Map, Value, json};

use super::chain::ChainHead;
use super::error::AuditLogError;
use super::gap::Gap;
use super::kept_lines::KeptLines;
use super::lines::MAX_LINE_BYTES;
use super::open::{OpenedLog, open};
use super::watch::{AppendFile, LogFile};
use super::{AuditEvent, AuditSink};
use crate::clock::{Clock, SystemClock};
use crate::envelope::timestamp;

/// How many events may wait for the disk. Beyond that they are counted, not kept.
const MAX_QUEUED_EVENTS: usize = 4_096;
/// How often an idle writer looks whether its file is as it left it.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// The longest value that stays in a line that would be too long with all of them, in bytes.
const MAX_KEPT_VALUE_BYTES: usize = 1 << 10;

/// Writes events to one file, in order, from one thread.
pub struct AuditLog {
    sender: Mutex<Option<SyncSender<Message>>>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Event(AuditEvent),
    Flush(SyncSender<()>),
}

/// How a log is opened.
pub struct AuditLogParts<'a> {
    pub path: &'a Path,
    /// The name of its chain in the store.
    pub node: &'a str,
    pub store: Arc<dyn Store>,
    /// What gap lines take their time from.
    pub clock: Arc<dyn Clock>,
    /// Whether the store keeps a copy of every line.
    pub keep_in_store: bool,
}

impl AuditLog {
    /// Opens a log for appending, under the name of this node. When it returns, the store knows that there is one.
    pub async fn open(path: &Path, node: &str, store: Arc<dyn Store>) -> Result<Self, AuditLogError> {
        Self::open_with_clock(path, node, store, Arc::new(SystemClock)).await
    }

    /// The same with another clock than the machine's, which gap lines take their time from.
    pub async fn open_with_clock(
        path: &Path,
        node: &str,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuditLogError> {
        Self::open_with(AuditLogParts { path, node, store, clock, keep_in_store: false }).await
    }

    pub async fn open_with(parts: AuditLogParts<'_>) -> Result<Self, AuditLogError> {
        let AuditLogParts { path, node, store, clock, keep_in_store } = parts;
        let row = store.get(Table::Audit, node).await?;
        let kept: Option<ChainHead> = row.and_then(|row| serde_json::from_value(row.value).ok());
        let expected = kept.clone().unwrap_or_default();
        let OpenedLog { file, length, head, has_stored_head } = open(path, &expected)?;
        let kept_lines = match keep_in_store {
            true => Some(KeptLines::open(node, head.seq, &*store).await?),
            false => None,
        };
        let lost = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = sync_channel(MAX_QUEUED_EVENTS);
        let mut writer = Writer {
            disk: Some(LogFile::new(file, length)),
            path: path.to_owned(),
            head,
            node: node.to_owned(),
            store,
            clock,
            lost: lost.clone(),
            kept_lines,
        };
        let found = writer.head.seq;
        if !has_stored_head || (kept.is_none() && found > 0) {
            // What was cut off or replaced stays so, and a gap line says so.
            let known = kept.as_ref().map(|head| head.seq);
            tracing::error!(path = %path.display(), expected = known, found, "audit trail was cut off or replaced");
            writer.append_gap(&Gap { expected: kept.as_ref(), found: Some(found) });
        }
        if has_stored_head && kept.is_some() && found > expected.seq {
            let lines = found - expected.seq;
            tracing::warn!(
                path = %path.display(), lines,
                "the audit trail is ahead of the store: after a crash, or with a store from a backup, \
                 what these lines tell of may be missing from the store"
            );
        }
        if kept.as_ref() != Some(&writer.head) {
            // Before the first line: a file that is deleted later is one that the store knows.
            writer.store.commit(writer.head_row()).await.map_err(CommitError::into_store_error)?;
        }
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&receiver))
            .map_err(|reason| AuditLogError::Unreadable { path: path.to_owned(), reason })?;
        Ok(Self { sender: Mutex::new(Some(sender)), lost, writer: Mutex::new(Some(thread)) })
    }

    /// Events that were lost and are not yet mentioned in the log.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until everything recorded so far is in the file.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        // Not under the lock: while this waits for a place in the queue, others must be able to record.
        let sender = self.lock().clone();
        if sender.is_some_and(|sender| sender.send(Message::Flush(done)).is_ok()) {
            let _ = wait.recv();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SyncSender<Message>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditSink for AuditLog {
    fn record(&self, event: AuditEvent) {
        let sender = self.lock();
        let Some(sender) = sender.as_ref() else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            sender.try_send(Message::Event(event))
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.lock().take();
        let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

struct Writer<F = File> {
    /// `None` while something else is at the path of the log.
    disk: Option<LogFile<F>>,
    path: PathBuf,
    head: ChainHead,
    node: String,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lost: Arc<AtomicU64>,
    /// The copy in the store, where there is one.
    kept_lines: Option<KeptLines>,
}

impl<F: AppendFile> Writer<F> {
    fn run(mut self, receiver: &Receiver<Message>) {
        if self.kept_lines.is_some() {
            // What an earlier process did not hand over.
            self.keep_head();
        }
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

    fn append_gap(&mut self, gap: &Gap<'_>) {
        self.append(gap.fields(self.clock.now()));
    }

    fn append(&mut self, mut fields: Map<String, Value>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
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
            }
            Err(error) => {
                self.lost.fetch_add(lost + 1, Ordering::Relaxed);
                let error = DiskError::explain(&error);
                tracing::error!(error, path = %self.path.display(), "cannot write the audit trail");
            }
        }
    }

    fn keep_head(&mut self) {
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

    fn head_row(&self) -> Commit {
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
mod tests {
    use std::io::Write;

    use quarterdeck_store::MemoryStore;

    use super::super::watch::State;
    use super::*;

    /// A disk that takes so many more bytes, and cannot always be cut back.
    struct SmallDisk {
        bytes: Vec<u8>,
        room: usize,
        can_be_cut: bool,
    }

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let fits = bytes.len().min(self.room);
            if fits == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend(&bytes[..fits]);
            self.room -= fits;
            Ok(fits)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl AppendFile for SmallDisk {
        fn cut(&mut self, length: u64) -> std::io::Result<()> {
            if !self.can_be_cut {
                return Err(std::io::ErrorKind::PermissionDenied.into());
            }
            self.bytes.truncate(length as usize);
            Ok(())
        }

        fn state(&mut self, _: &Path) -> std::io::Result<State> {
            Ok(State { is_at_path: true, length: self.bytes.len() as u64 })
        }

        fn has_line_end(&mut self) -> std::io::Result<bool> {
            Ok(self.bytes.last().is_none_or(|last| *last == b'\n'))
        }

        fn open_anew(_: &Path, _: &ChainHead) -> Result<(Self, u64), AuditLogError> {
            unreachable!("it is where it was")
        }
    }

    fn fields(event: &str) -> Map<String, Value> {
        Map::from_iter([("event".to_owned(), event.into())])
    }

    #[test]
    fn a_full_disk_leaves_no_half_line_and_the_next_line_says_what_was_lost() {
        for can_be_cut in [true, false] {
            let file = SmallDisk { bytes: Vec::new(), room: 300, can_be_cut };
            let mut writer = Writer {
                disk: Some(LogFile::new(file, 0)),
                path: "audit.jsonl".into(),
                head: ChainHead::default(),
                node: "n".into(),
                store: Arc::new(MemoryStore::new()),
                clock: Arc::new(SystemClock),
                lost: Arc::default(),
                kept_lines: None,
            };
            writer.append(fields("first"));
            writer.append(fields("does not fit"));
            writer.append(fields("does not fit either"));
            assert_eq!(writer.lost.load(Ordering::Relaxed), 2);
            let file = &mut writer.disk.as_mut().unwrap().file;
            (file.room, file.can_be_cut) = (10_000, true);
            writer.append(fields("fits again"));
            let text = String::from_utf8(writer.disk.unwrap().file.bytes).unwrap();
            let mut head = ChainHead::default();
            for line in text.lines() {
                head = head.after(line).unwrap();
            }
            assert_eq!(head.seq, 2);
            assert!(text.contains("\"event\":\"fits again\",\"lost\":2"), "{text}");
        }
    }

    #[test]
    fn a_line_that_would_be_too_long_to_be_read_again_is_shortened() {
        let file = SmallDisk { bytes: Vec::new(), room: usize::MAX, can_be_cut: true };
        let mut writer = Writer {
            disk: Some(LogFile::new(file, 0)),
            path: "audit.jsonl".into(),
            head: ChainHead::default(),
            node: "n".into(),
            store: Arc::new(MemoryStore::new()),
            clock: Arc::new(SystemClock),
            lost: Arc::default(),
            kept_lines: None,
        };
        let mut long = fields("long");
        long.insert("args".into(), "x".repeat(MAX_LINE_BYTES).into());
        writer.append(long);
        let text = String::from_utf8(writer.disk.unwrap().file.bytes).unwrap();
        ChainHead::default().after(text.trim_end()).unwrap();
        assert!(text.contains("\"event\":\"long\"") && text.contains("omittedBytes"), "{}", text.len());
        assert!(text.len() < 1_000);
    }
}
