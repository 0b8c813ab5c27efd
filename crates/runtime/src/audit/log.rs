//! The audit log of a process: events go to the one thread that writes them.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use quarterdeck_contracts::{CommitError, Store, Table};

use super::chain::ChainHead;
use super::error::AuditLogError;
use super::gap::Gap;
use super::kept_lines::KeptLines;
use super::lost_lines::LostLines;
use super::open::{OpenedLog, open};
use super::segment::{Maintenance, MaintenanceParts, SegmentFiles, SegmentSettings};
use super::watch::LogFile;
use super::writer::{Message, Writer};
use super::{AuditEvent, AuditSink};
use crate::clock::{Clock, SystemClock};

/// How many events may wait for the disk. Beyond that they are counted, not kept.
const MAX_QUEUED_EVENTS: usize = 4_096;

/// Writes events to the newest segment, in order, from one thread.
pub struct AuditLog {
    sender: Mutex<Option<SyncSender<Message>>>,
    lost: LostLines,
    writer: Mutex<Option<JoinHandle<()>>>,
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
    pub segments: SegmentSettings,
}

impl AuditLogParts<'_> {
    pub(super) fn maintenance(&self) -> MaintenanceParts {
        MaintenanceParts {
            files: SegmentFiles::new(self.path),
            node: self.node.to_owned(),
            compress: self.segments.compress,
            seal_file: self.segments.seal_file.clone(),
            store: self.keep_in_store.then(|| self.store.clone()),
        }
    }
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
        let segments = SegmentSettings::default();
        Self::open_with(AuditLogParts { path, node, store, clock, keep_in_store: false, segments }).await
    }

    pub async fn open_with(parts: AuditLogParts<'_>) -> Result<Self, AuditLogError> {
        let failed = |reason| AuditLogError::Unreadable { path: parts.path.to_owned(), reason };
        let maintenance = Maintenance::start(parts.maintenance()).map_err(failed)?;
        let writer = open_writer(&parts, Some(maintenance)).await?;
        let lost = writer.lost.clone();
        let (sender, receiver) = sync_channel(MAX_QUEUED_EVENTS);
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&receiver))
            .map_err(failed)?;
        Ok(Self { sender: Mutex::new(Some(sender)), lost, writer: Mutex::new(Some(thread)) })
    }

    /// Events that were lost and are not yet mentioned in the log.
    pub fn lost(&self) -> u64 {
        self.lost.untold()
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
            self.lost.add_one();
        }
    }

    fn lost_lines(&self) -> LostLines {
        self.lost.clone()
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

/// Opens a log and says in it what was cut off or replaced meanwhile. When it returns, the store knows the log.
pub(super) async fn open_writer(
    parts: &AuditLogParts<'_>,
    maintenance: Option<Maintenance>,
) -> Result<Writer, AuditLogError> {
    let AuditLogParts { path, node, store, clock, keep_in_store, segments } = parts;
    let row = store.get(Table::Audit, node).await?;
    let kept: Option<ChainHead> = row.and_then(|row| serde_json::from_value(row.value).ok());
    let expected = kept.clone().unwrap_or_default();
    let OpenedLog { file, length, head, has_stored_head, segment } = open(path, &expected)?;
    let kept_lines = match keep_in_store {
        true => Some(KeptLines::open(node, head.seq, &**store).await?),
        false => None,
    };
    let found = head.seq;
    let mut writer = Writer {
        disk: Some(LogFile::new(file, length)),
        path: path.to_path_buf(),
        head,
        node: (*node).to_owned(),
        store: store.clone(),
        clock: clock.clone(),
        lost: LostLines::default(),
        kept_lines,
        segment,
        settings: segments.clone(),
        retry_rotation_at: None,
        last_cut: 0,
        maintenance,
    };
    writer.begin_segment();
    if !has_stored_head || (kept.is_none() && found > 0) {
        // What was cut off or replaced stays so, and a gap line says so.
        let known = kept.as_ref().map(|head| head.seq);
        tracing::error!(path = %path.display(), expected = known, found, "audit trail was cut off or replaced");
        writer.append_gap(&Gap { expected: kept.as_ref(), found: Some(found) });
    }
    writer.cut_expired();
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
    Ok(writer)
}
