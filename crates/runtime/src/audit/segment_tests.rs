//! Segments under crashes and attacks: whatever happens, the log verifies, has every line once, and hides no edit.

mod attacks;
mod crashes;
mod reading;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Map, Value};

use super::log::{AuditLogParts, open_writer};
use super::segment::crash_point::{CrashPoint, arm};
use super::segment::{SegmentFiles, SegmentSettings, maintain};
use super::writer::Writer;
use super::{AuditEntry, AuditReader, Verification, verify_sealed};
use crate::clock::Clock;

const DAY: u64 = 86_400;

/// A log on a real disk, whose maintenance runs when the test says so, on the test's own thread.
struct World {
    folder: Tree,
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    settings: SegmentSettings,
    writer: Option<Writer>,
    /// The next event's number, and when each one was written that was acknowledged.
    next: u64,
    acknowledged: Vec<(u64, u64)>,
}

/// Seconds since 1970.
#[derive(Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

impl World {
    /// Segments of a few lines, kept for three days.
    fn new() -> Self {
        let folder = tree("");
        let settings = SegmentSettings {
            max_bytes: 1_000,
            daily: true,
            compress: true,
            retain: Some(Duration::from_secs(3 * DAY)),
            seal_file: Some(folder.join("seals.jsonl")),
        };
        let clock = Arc::new(TestClock(AtomicU64::new(20_000 * DAY)));
        let (store, acknowledged) = (Arc::new(MemoryStore::new()), Vec::new());
        Self { folder, store, clock, settings, writer: None, next: 1, acknowledged }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    fn files(&self) -> SegmentFiles {
        SegmentFiles::new(&self.path())
    }

    fn parts<'a>(&self, path: &'a Path) -> AuditLogParts<'a> {
        AuditLogParts {
            path,
            node: "node",
            store: self.store.clone(),
            clock: self.clock.clone(),
            keep_in_store: false,
            segments: self.settings.clone(),
        }
    }

    fn open(&mut self) {
        let path = self.path();
        self.writer = Some(block_on(open_writer(&self.parts(&path), None)).unwrap());
    }

    fn append(&mut self) {
        if self.writer.is_none() {
            self.open();
        }
        let number = self.next;
        self.next += 1;
        let fields = Map::from_iter([
            ("event".to_owned(), "test".into()),
            ("time".to_owned(), crate::envelope::timestamp(self.clock.now()).into()),
            ("number".to_owned(), number.into()),
            ("text".to_owned(), "é\n".repeat(number as usize % 40).into()),
        ]);
        let writer = self.writer.as_mut().unwrap();
        writer.append(fields);
        writer.keep_head();
        self.acknowledged.push((number, self.clock.0.load(Ordering::Relaxed)));
    }

    fn maintain(&mut self) {
        let Some(writer) = &self.writer else { return };
        let (closed, cut, path) = (writer.segment.number - 1, writer.last_cut, self.path());
        maintain(&self.parts(&path).maintenance(), closed, cut, &|| false).unwrap();
    }

    fn pass_days(&self, days: u64) {
        self.clock.0.fetch_add(days * DAY, Ordering::Relaxed);
    }

    /// The process ends.
    fn stop(&mut self) {
        self.writer = None;
    }

    /// Does something, and ends the process where it comes to the point; whether it did.
    fn crash_at(&mut self, point: CrashPoint, act: impl FnOnce(&mut Self)) -> bool {
        arm(Some(point));
        let ended = catch_unwind(AssertUnwindSafe(|| act(self)));
        arm(None);
        if let Err(cause) = ended {
            // Anything else is a failure of the test.
            if !cause.is::<CrashPoint>() {
                std::panic::resume_unwind(cause);
            }
            self.stop();
            return true;
        }
        false
    }

    fn verify(&self) -> Verification {
        let seals = self.settings.seal_file.as_deref();
        block_on(verify_sealed(&self.path(), "node", &*self.store, seals)).unwrap()
    }

    /// The numbers of all events that can be read, and how many lines cannot.
    fn read(&self) -> (Vec<u64>, usize) {
        let (mut numbers, mut damaged) = (Vec::new(), 0);
        let mut reader = AuditReader::open(&self.path()).unwrap();
        loop {
            match reader.next_entry().unwrap() {
                AuditEntry::Line(_, value) => numbers.extend(value["number"].as_u64()),
                AuditEntry::Damaged(_) | AuditEntry::Partial(_) => damaged += 1,
                AuditEntry::End => return (numbers, damaged),
            }
            assert!(damaged < 1_000);
        }
    }

    /// The log verifies, and has every acknowledged event once and in order, but for those that are old enough to be cut.
    fn check(&self) {
        let found = self.verify();
        assert_eq!(found.fault, None, "{found:?}");
        let (numbers, damaged) = self.read();
        assert_eq!(damaged, 0);
        assert!(numbers.is_sorted_by(|one, other| one < other), "each once and in order: {numbers:?}");
        let now = self.clock.0.load(Ordering::Relaxed);
        let mut is_kept = false;
        for (number, written) in &self.acknowledged {
            let is_here = numbers.binary_search(number).is_ok();
            let may_be_cut = !is_kept && now - written > 3 * DAY;
            assert!(is_here || may_be_cut, "event {number} of {numbers:?} at {now}");
            is_kept |= is_here;
        }
        assert!(
            found.cut.is_some() || numbers.first() == self.acknowledged.first().map(|(number, _)| number)
        );
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn event(value: &Value) -> &str {
    value["event"].as_str().unwrap_or_default()
}
