//! The trail on disk.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use quarterdeck_contracts::{Commit, Store, Table};
use serde_json::{Map, Value, json};

use super::chain::{Head, parts};
use super::{Audit, Happening};
use crate::envelope::timestamp;

/// How many happenings may wait for the disk. Beyond that they are counted, not kept.
const WAITING: usize = 4_096;

/// Writes happenings to one file, in order, from one thread.
pub struct AuditLog {
    sender: Mutex<Option<SyncSender<Message>>>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Happened(Happening),
    Flush(SyncSender<()>),
}

/// Why a trail cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// The file cannot be opened or read.
    #[error("cannot open the audit trail {path}: {reason}")]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// Its last line is not whole.
    #[error(
        "the last line of {path} is not a line of the audit trail; move the file away and keep it, a new one is begun"
    )]
    Damaged {
        /// Which one.
        path: PathBuf,
    },
    /// Another process writes it.
    #[error("the audit trail {path} is written by another process; stop that one first")]
    InUse {
        /// Which one.
        path: PathBuf,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] quarterdeck_contracts::StoreError),
}

impl AuditLog {
    /// Opens a trail for appending, under the name of this node.
    pub async fn open(path: &Path, node: &str, store: Arc<dyn Store>) -> Result<Self, AuditLogError> {
        let kept = store.get(Table::Audit, node).await?;
        let kept: Head = kept.and_then(|row| serde_json::from_value(row.value).ok()).unwrap_or_default();
        let (file, length, head, known) = open(path, &kept)?;
        let lost = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = sync_channel(WAITING);
        let disk = Disk { file, length, is_torn: false };
        let mut writer =
            Writer { disk, path: path.to_owned(), head, node: node.to_owned(), store, lost: lost.clone() };
        if !known {
            // What was cut off or replaced stays so, and the trail says so itself.
            let (expected, found) = (kept.seq, writer.head.seq);
            tracing::error!(path = %path.display(), expected, found, "audit trail was cut off or replaced");
            let fields = json!({
                "event": "audit_gap", "time": timestamp(std::time::SystemTime::now()),
                "expected": expected, "expectedHash": kept.hash, "found": found,
            });
            writer.append(fields.as_object().cloned().unwrap_or_default());
        }
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer.run(&receiver))
            .map_err(|reason| AuditLogError::Unreadable { path: path.to_owned(), reason })?;
        Ok(Self { sender: Mutex::new(Some(sender)), lost, writer: Mutex::new(Some(thread)) })
    }

    /// Happenings that were not kept and not yet told of in the trail.
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

impl Audit for AuditLog {
    fn record(&self, happening: Happening) {
        let sender = self.lock();
        let Some(sender) = sender.as_ref() else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            sender.try_send(Message::Happened(happening))
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
    disk: Disk<F>,
    path: PathBuf,
    head: Head,
    node: String,
    store: Arc<dyn Store>,
    lost: Arc<AtomicU64>,
}

/// The file, and how much of it is whole lines.
struct Disk<F> {
    file: F,
    length: u64,
    /// Whether there is more in the file than whole lines.
    is_torn: bool,
}

/// What can be cut back to a length.
trait Cut {
    fn cut(&mut self, length: u64) -> std::io::Result<()>;
}

impl Cut for File {
    fn cut(&mut self, length: u64) -> std::io::Result<()> {
        self.set_len(length)
    }
}

impl<F: Write + Cut> Disk<F> {
    /// Writes a line whole or not at all: what a full disk has taken of it is cut off again, before it or with the
    /// next line, so that no later line is glued to half of one.
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.mend()?;
        // One write for one line, so that a crash leaves at most the last one torn.
        match self.file.write_all(line) {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                self.is_torn = true;
                let _ = self.mend();
                return Err(error);
            }
        }
        Ok(())
    }

    fn mend(&mut self) -> std::io::Result<()> {
        if self.is_torn {
            self.file.cut(self.length)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

impl<F: Write + Cut> Writer<F> {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(message) = receiver.recv() {
            let mut waiting = Vec::new();
            self.take(message, &mut waiting);
            // What has piled up in the meantime shares one update of the head.
            while let Ok(message) = receiver.try_recv() {
                self.take(message, &mut waiting);
            }
            self.keep_head();
            waiting.into_iter().for_each(drop);
        }
    }

    fn take(&mut self, message: Message, waiting: &mut Vec<SyncSender<()>>) {
        match message {
            Message::Flush(done) => waiting.push(done),
            Message::Happened(happening) => {
                let mut fields = Map::new();
                fields.insert("event".into(), Value::from(&*happening.event));
                fields.insert("time".into(), timestamp(happening.time).into());
                fields.extend(happening.fields);
                self.append(fields);
            }
        }
    }

    fn append(&mut self, mut fields: Map<String, Value>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            fields.insert("lost".into(), lost.into());
            tracing::error!(lost, path = %self.path.display(), "audit lines were lost");
        }
        let (mut line, next) = self.head.line(&fields);
        line.push('\n');
        match self.disk.write(line.as_bytes()) {
            Ok(()) => self.head = next,
            Err(error) => {
                self.lost.fetch_add(lost + 1, Ordering::Relaxed);
                tracing::error!(error = %error, path = %self.path.display(), "cannot write the audit trail");
            }
        }
    }

    fn keep_head(&self) {
        let commit = Commit::default().put(Table::Audit, self.node.clone(), json!(self.head));
        if let Err(error) = self.store.queue(commit) {
            tracing::warn!(error = %error, "the head of the audit trail was not stored");
        }
    }
}

/// The file, ready for the next line, its length, the end of its chain, and whether the line that the store knows as
/// the last is in it. A line that a crash has torn is taken off again.
fn open(path: &Path, kept: &Head) -> Result<(File, u64, Head, bool), AuditLogError> {
    let unreadable = |reason| AuditLogError::Unreadable { path: path.to_owned(), reason };
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(unreadable)?;
    // Two writers would fork the chain.
    if file.try_lock().is_err() {
        return Err(AuditLogError::InUse { path: path.to_owned() });
    }
    let mut last = Vec::new();
    let mut whole = 0_u64;
    let mut known = *kept == Head::default();
    for (line, seq) in BufReader::new(&file).split(b'\n').zip(1_u64..) {
        let line = line.map_err(unreadable)?;
        whole += line.len() as u64 + 1;
        known |= seq == kept.seq && ends_as(&line, kept);
        last = line;
    }
    let length = file.metadata().map_err(unreadable)?.len();
    if whole > length {
        // The last line has no end: it was torn.
        let torn = last.len() as u64;
        file.set_len(length - torn).map_err(unreadable)?;
        tracing::warn!(path = %path.display(), bytes = torn, "a torn last line was taken off the audit trail");
        drop(file);
        return open(path, kept);
    }
    if length == 0 {
        return Ok((file, 0, Head::default(), known));
    }
    match parts(&String::from_utf8_lossy(&last)) {
        Some((_, _, head)) => Ok((file, length, head, known)),
        None => Err(AuditLogError::Damaged { path: path.to_owned() }),
    }
}

fn ends_as(line: &[u8], head: &Head) -> bool {
    parts(&String::from_utf8_lossy(line)).is_some_and(|(_, _, found)| found == *head)
}

#[cfg(test)]
mod tests {
    use quarterdeck_store::MemoryStore;

    use super::*;

    /// A disk that takes so many more bytes, and cannot always be cut back.
    struct Small {
        bytes: Vec<u8>,
        room: usize,
        can_be_cut: bool,
    }

    impl Write for Small {
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

    impl Cut for Small {
        fn cut(&mut self, length: u64) -> std::io::Result<()> {
            if !self.can_be_cut {
                return Err(std::io::ErrorKind::PermissionDenied.into());
            }
            self.bytes.truncate(length as usize);
            Ok(())
        }
    }

    fn fields(event: &str) -> Map<String, Value> {
        Map::from_iter([("event".to_owned(), event.into())])
    }

    #[test]
    fn a_full_disk_leaves_no_half_line_and_the_next_line_says_what_was_lost() {
        for can_be_cut in [true, false] {
            let file = Small { bytes: Vec::new(), room: 300, can_be_cut };
            let mut writer = Writer {
                disk: Disk { file, length: 0, is_torn: false },
                path: "audit.jsonl".into(),
                head: Head::default(),
                node: "n".into(),
                store: Arc::new(MemoryStore::new()),
                lost: Arc::default(),
            };
            writer.append(fields("first"));
            writer.append(fields("does not fit"));
            writer.append(fields("does not fit either"));
            assert_eq!(writer.lost.load(Ordering::Relaxed), 2);
            writer.disk.file.room = 10_000;
            writer.disk.file.can_be_cut = true;
            writer.append(fields("fits again"));
            let text = String::from_utf8(writer.disk.file.bytes.clone()).unwrap();
            let mut head = Head::default();
            for line in text.lines() {
                head = head.after(line).unwrap();
            }
            assert_eq!(head.seq, 2);
            assert!(text.contains("\"event\":\"fits again\",\"lost\":2"), "{text}");
        }
    }
}
