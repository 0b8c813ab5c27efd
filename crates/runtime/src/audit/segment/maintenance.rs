//! What is done with closed segments, on a thread of its own and one at a time: they are sealed, those that were cut are
//! removed, the others are compressed. The thread that writes lines never waits for it.
//!
//! Each round looks at the disk for what is left to do, so a crash needs no record of what was under way.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{DiskError, Store};
use sha2::{Digest, Sha256};

use super::blocks::compress;
use super::crash_point::{CrashPoint, reach};
use super::files::SegmentFiles;
use super::reader::SegmentReader;
use super::rotation::sync_folder;
use super::seal::seal_closed;
use super::trim::trim_kept_lines;

const STOP_TIMEOUT: Duration = Duration::from_secs(2);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What maintenance works with.
pub(in crate::audit) struct MaintenanceParts {
    pub(in crate::audit) files: SegmentFiles,
    pub(in crate::audit) node: String,
    pub(in crate::audit) compress: bool,
    pub(in crate::audit) seal_file: Option<PathBuf>,
    /// The store, where it has copies of lines.
    pub(in crate::audit) store: Option<Arc<dyn Store>>,
}

/// How far the writer has come.
#[derive(Default)]
struct Progress {
    /// The last segment that is closed.
    closed: AtomicU64,
    /// The last segment that was cut, and its last line.
    cut: Mutex<(u64, u64)>,
    is_stopped: AtomicBool,
}

/// The thread, and what tells it of work.
pub(in crate::audit) struct Maintenance {
    progress: Arc<Progress>,
    /// One waiting signal is enough: a round does everything there is to do.
    signal: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    /// Starts the thread, within the runtime that runs what it asks the store for.
    pub(in crate::audit) fn start(parts: MaintenanceParts) -> io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let (signal, receiver) = sync_channel(1);
        let runtime = tokio::runtime::Handle::try_current().ok();
        let worker = Worker { parts, progress: progress.clone(), runtime, is_trimming: Arc::default() };
        let thread =
            std::thread::Builder::new().name("audit-segments".into()).spawn(move || worker.run(&receiver))?;
        Ok(Self { progress, signal: Some(signal), thread: Some(thread) })
    }

    /// Segments up to this one are closed.
    pub(in crate::audit) fn closed(&self, segment: u64) {
        self.progress.closed.store(segment, Ordering::Release);
        self.wake();
    }

    /// Segments up to this one, with this last line, are recorded as cut, and are to be removed.
    pub(in crate::audit) fn cut(&self, segment: u64, last_line: u64) {
        *self.progress.lock_cut() = (segment, last_line);
        self.wake();
    }

    fn wake(&self) {
        if let Some(signal) = &self.signal {
            let _ = signal.try_send(());
        }
    }
}

impl Drop for Maintenance {
    /// Does not wait until a segment is compressed: the next start goes on with it. Nor for a seal file on a disk that does
    /// not answer: the thread is left behind, and ends with the process.
    fn drop(&mut self) {
        self.progress.is_stopped.store(true, Ordering::Release);
        self.signal.take();
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(STOP_POLL_INTERVAL);
        }
    }
}

impl Progress {
    fn lock_cut(&self) -> std::sync::MutexGuard<'_, (u64, u64)> {
        self.cut.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

struct Worker {
    parts: MaintenanceParts,
    progress: Arc<Progress>,
    runtime: Option<tokio::runtime::Handle>,
    is_trimming: Arc<AtomicBool>,
}

impl Worker {
    fn run(&self, receiver: &Receiver<()>) {
        while receiver.recv().is_ok() && !self.progress.is_stopped() {
            let closed = self.progress.closed.load(Ordering::Acquire);
            let (cut, _) = *self.progress.lock_cut();
            if let Err(error) = maintain(&self.parts, closed, cut, &|| self.progress.is_stopped()) {
                let (error, path) = (DiskError::explain(&error), self.parts.files.path().display());
                tracing::warn!(error, path = %path, "audit segments could not be sealed, removed or compressed");
            }
            if cut > 0 {
                self.trim_store();
            }
        }
    }

    /// The copies in the store go without being waited for: a store that cannot be reached must not hold up the end of the
    /// process. What is left after a failure goes with the next cut.
    fn trim_store(&self) {
        let (Some(store), Some(runtime)) = (&self.parts.store, &self.runtime) else { return };
        if self.is_trimming.swap(true, Ordering::AcqRel) {
            return;
        }
        let (store, node) = (store.clone(), self.parts.node.clone());
        let (progress, is_trimming) = (self.progress.clone(), self.is_trimming.clone());
        runtime.spawn(async move {
            loop {
                let (_, last_line) = *progress.lock_cut();
                let trimmed = trim_kept_lines(&*store, &node, last_line).await;
                is_trimming.store(false, Ordering::Release);
                if let Err(error) = trimmed {
                    tracing::warn!(error, "copies of cut audit lines could not be removed from the store");
                    return;
                }
                // What was cut meanwhile has found this task at work, and left it to it.
                let is_newest = progress.lock_cut().1 == last_line;
                if is_newest || is_trimming.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
    }
}

/// One round over the closed segments.
pub(in crate::audit) fn maintain(
    parts: &MaintenanceParts,
    closed: u64,
    cut: u64,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let files = &parts.files;
    // A seal file that cannot be written holds up nothing else; it is written later.
    let sealed = match &parts.seal_file {
        Some(seal_file) => seal_closed(files, &parts.node, closed, seal_file),
        None => Ok(()),
    };
    remove_cut(files, cut)?;
    if parts.compress {
        for segment in files.list_plain()?.into_iter().filter(|segment| *segment <= closed) {
            if is_stopped() {
                break;
            }
            compress_segment(files, segment, is_stopped)?;
        }
    }
    sealed
}

/// Removes segments, the oldest first, so that those that are left follow each other.
fn remove_cut(files: &SegmentFiles, last: u64) -> io::Result<()> {
    for segment in files.list()?.into_iter().take_while(|segment| *segment <= last) {
        for path in [files.compressed(segment), files.plain(segment)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        sync_folder(files.folder());
        reach(CrashPoint::SegmentRemoved);
    }
    Ok(())
}

/// Compresses a segment, reads it back, and only then removes the plain one.
fn compress_segment(files: &SegmentFiles, segment: u64, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let (plain, compressed) = (files.plain(segment), files.compressed(segment));
    let partial = compressed.with_extension("partial");
    let written = write_compressed(&plain, &partial, is_stopped);
    if let Err(error) = written {
        let _ = fs::remove_file(&partial);
        return if is_stopped() { Ok(()) } else { Err(error) };
    }
    reach(CrashPoint::CompressedWritten);
    fs::rename(&partial, &compressed)?;
    sync_folder(files.folder());
    reach(CrashPoint::CompressedNamed);
    fs::remove_file(&plain)?;
    sync_folder(files.folder());
    reach(CrashPoint::PlainRemoved);
    Ok(())
}

fn write_compressed(plain: &Path, partial: &Path, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(partial)?;
    compress(&mut File::open(plain)?, &mut file, is_stopped)?;
    file.sync_all()?;
    let packed = super::reader::SegmentSource::compressed(File::open(partial)?)?;
    let is_equal = digest(&mut SegmentReader::new(packed))? == digest(&mut File::open(plain)?)?;
    match is_equal {
        true => Ok(()),
        false => Err(io::Error::other("the compressed segment does not hold what was compressed")),
    }
}

fn digest(from: &mut impl Read) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&chunk[..read]),
        }
    }
}
