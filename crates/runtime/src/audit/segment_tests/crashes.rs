//! A process that ends between any two changes of the disk.

use std::fs::{self, OpenOptions};
use std::io::Write;

use proptest::prelude::*;
use quarterdeck_contracts::{Commit, Store, Table};

use super::super::segment::crash_point::{ALL, CrashPoint};
use super::*;

/// Writes, closes, seals, compresses and cuts segments.
fn everything(world: &mut World) {
    for _ in 0..6 {
        for _ in 0..8 {
            world.append();
        }
        world.maintain();
        world.pass_days(1);
    }
    world.append();
    world.maintain();
}

#[test]
fn a_crash_at_any_step_leaves_a_log_that_verifies_and_goes_on() {
    for point in ALL {
        // At the first, second … time that it comes there.
        for skipped in 0..3 {
            let mut world = World::new();
            let mut has_crashed = false;
            for _ in 0..=skipped {
                has_crashed = world.crash_at(point, everything);
                assert!(has_crashed, "{point:?} is never reached");
                world.check();
            }
            everything(&mut world);
            world.check();
            let found = world.verify();
            assert!(found.cut.is_some() && found.closed_segments > 0, "{point:?}: {found:?}");
            assert_eq!(found.seals.unwrap().unsealed, 0, "{point:?}");
            let plain = world.files().list_plain().unwrap();
            assert!(plain.is_empty(), "{point:?}: everything closed is compressed: {plain:?}");
            assert!(has_crashed);
        }
    }
}

#[test]
fn a_segment_that_was_moved_and_not_followed_is_followed_at_the_next_start() {
    // As where a file cannot have two names, and the process ended between two renames.
    let mut world = World::new();
    (0..8).for_each(|_| world.append());
    let segment = world.writer.as_ref().unwrap().segment.number;
    world.stop();
    fs::create_dir_all(world.files().folder()).unwrap();
    fs::rename(world.path(), world.files().plain(segment)).unwrap();
    world.check();
    world.append();
    world.check();
    let first = world.files().open_active().unwrap().unwrap().first.unwrap();
    assert_eq!(first.segment(), segment + 1);
}

#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    Maintain,
    NextDay(u8),
    Restart,
    Crash(usize),
    TornLine(usize),
    CrashBeforeStore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..12_u8).prop_map(Step::Append),
        3 => Just(Step::Maintain),
        2 => (1..3_u8).prop_map(Step::NextDay),
        1 => Just(Step::Restart),
        3 => (0..ALL.len()).prop_map(Step::Crash),
        1 => (0..80_usize).prop_map(Step::TornLine),
        1 => Just(Step::CrashBeforeStore),
    ]
}

impl World {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Append(lines) => (0..*lines).for_each(|_| self.append()),
            Step::Maintain => self.maintain(),
            Step::NextDay(days) => self.pass_days((*days).into()),
            Step::Restart => self.stop(),
            Step::Crash(point) => drop(self.crash_at(ALL[*point], |world| {
                (0..6).for_each(|_| world.append());
                world.maintain();
            })),
            Step::TornLine(bytes) => self.tear(*bytes),
            Step::CrashBeforeStore => {
                // The line is in the file, and the store does not know it.
                let head = block_on(self.store.get(Table::Audit, "node")).unwrap();
                self.append();
                self.stop();
                if let Some(head) = head {
                    let commit = Commit::default().put(Table::Audit, "node", head.value);
                    block_on(self.store.commit(commit)).unwrap();
                }
            }
        }
    }

    /// The process ends in the middle of a line.
    fn tear(&mut self, bytes: usize) {
        let Some(writer) = &self.writer else { return };
        let line = writer.head.line(&Map::new()).0;
        self.stop();
        let mut file = OpenOptions::new().append(true).open(self.path()).unwrap();
        file.write_all(&line.as_bytes()[..bytes.min(line.len() - 1)]).unwrap();
        // The next start takes it off.
        self.open();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nothing_is_lost_or_twice_and_any_edit_is_found(
        steps in prop::collection::vec(step(), 1..24),
        edit in any::<(prop::sample::Index, prop::sample::Index, u8)>(),
    ) {
        let mut world = World::new();
        world.append();
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.append();
        world.check();
        world.stop();
        // One byte of one file is changed.
        let text = world.read_text();
        let mut files: Vec<PathBuf> = world.log_files();
        files.sort();
        let path = &files[edit.0.index(files.len())];
        let mut bytes = fs::read(path).unwrap();
        prop_assume!(!bytes.is_empty());
        let at = edit.1.index(bytes.len());
        bytes[at] ^= edit.2.max(1);
        fs::write(path, bytes).unwrap();
        let is_found = world.verify().fault.is_some();
        // Compressed files have bytes that mean nothing.
        prop_assert!(is_found || world.read_text() == text, "byte {} of {}", at, path.display());
    }
}

impl World {
    /// The newest segment and the closed ones that are read.
    fn log_files(&self) -> Vec<PathBuf> {
        let files = self.files();
        let closed = files.list().unwrap().into_iter().map(|segment| {
            let plain = files.plain(segment);
            if plain.exists() { plain } else { files.compressed(segment) }
        });
        closed.chain([self.path()]).collect()
    }

    fn read_text(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut reader = AuditReader::open(&self.path()).unwrap();
        loop {
            match reader.next_entry().unwrap() {
                AuditEntry::Line(line, _) => lines.push(line),
                AuditEntry::Damaged(what) | AuditEntry::Partial(what) => {
                    lines.push(what);
                    if lines.len() > 10_000 || lines.last().is_some_and(|last| last.contains("incomplete")) {
                        return lines;
                    }
                }
                AuditEntry::End => return lines,
            }
        }
    }
}

#[test]
fn every_crash_point_is_listed_once() {
    for (place, point) in ALL.iter().enumerate() {
        assert_eq!(ALL.iter().position(|other: &CrashPoint| other == point), Some(place));
    }
}
