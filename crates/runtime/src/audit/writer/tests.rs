//! What a full disk and an oversized event leave in the log.

use std::io::Write;
use std::path::Path;

use quarterdeck_store::MemoryStore;

use super::super::error::AuditLogError;
use super::super::watch::State;
use super::*;
use crate::clock::SystemClock;

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

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn begin_next(_: &Path, _: u64, header: &[u8]) -> std::io::Result<Self> {
        // No room for a second file.
        Err(std::io::Error::other(format!("{} bytes do not fit", header.len())))
    }
}

fn writer(file: SmallDisk, settings: SegmentSettings) -> Writer<SmallDisk> {
    Writer {
        disk: Some(LogFile::new(file, 0)),
        path: "audit.jsonl".into(),
        head: ChainHead::default(),
        node: "n".into(),
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        lost: LostLines::default(),
        kept_lines: None,
        segment: SegmentPosition { number: 1, first: 1, offset: 0, day: None, header: None },
        settings,
        retry_rotation_at: None,
        last_cut: 0,
        maintenance: None,
    }
}

fn fields(event: &str) -> Map<String, Value> {
    Map::from_iter([("event".to_owned(), event.into())])
}

#[test]
fn a_full_disk_leaves_no_half_line_and_the_next_line_says_what_was_lost() {
    for can_be_cut in [true, false] {
        let file = SmallDisk { bytes: Vec::new(), room: 300, can_be_cut };
        let mut writer = writer(file, SegmentSettings::default());
        writer.append(fields("first"));
        writer.append(fields("does not fit"));
        writer.append(fields("does not fit either"));
        assert_eq!((writer.lost.untold(), writer.lost.total()), (2, 2));
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
    let mut writer = writer(file, SegmentSettings::default());
    let mut long = fields("long");
    long.insert("args".into(), "x".repeat(MAX_LINE_BYTES).into());
    writer.append(long);
    let text = String::from_utf8(writer.disk.unwrap().file.bytes).unwrap();
    ChainHead::default().after(text.trim_end()).unwrap();
    assert!(text.contains("\"event\":\"long\"") && text.contains("omittedBytes"), "{}", text.len());
    assert!(text.len() < 1_000);
}

#[test]
fn a_segment_that_cannot_be_closed_goes_on_and_loses_no_line() {
    let file = SmallDisk { bytes: Vec::new(), room: usize::MAX, can_be_cut: true };
    let mut writer = writer(file, SegmentSettings { max_bytes: 1, ..SegmentSettings::default() });
    (0..5).for_each(|_| writer.append(fields("event")));
    assert_eq!((writer.lost.untold(), writer.lost.total()), (0, 0));
    assert!(writer.retry_rotation_at.is_some(), "it is tried again, and not with every line");
    let text = String::from_utf8(writer.disk.unwrap().file.bytes).unwrap();
    let mut head = ChainHead::default();
    for line in text.lines() {
        head = head.after(line).unwrap();
    }
    assert_eq!((head.seq, text.contains("lost")), (5, false));
}
