//! Opens a log to continue it: is it ours, is its last line whole, and is the line in it that the store knows?
//!
//! Nothing is changed before the file is known to be a log, and of what is not a line of ours no byte is lost. Closed
//! segments are not read, but for their first and last lines.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::chain::{ChainHead, parts};
use super::error::AuditLogError;
use super::lines::{Ending, read_line};
use super::position::{SegmentPosition, locate};
use super::segment::{FirstLine, SegmentFiles};
use super::watch::is_at_path;

/// How often the file is opened again that was replaced between opening and locking it: another process has closed a
/// segment.
const MAX_OPEN_ATTEMPTS: usize = 8;

/// A log that is ready for its next line.
#[derive(Debug)]
pub(super) struct OpenedLog {
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) head: ChainHead,
    /// Whether the line that the store knows as the last is in it.
    pub(super) has_stored_head: bool,
    pub(super) segment: SegmentPosition,
}

/// Opens a log, or makes it for its owner alone.
pub(super) fn open(path: &Path, kept: &ChainHead) -> Result<OpenedLog, AuditLogError> {
    let unreadable = |reason| AuditLogError::Unreadable { path: path.to_owned(), reason };
    refuse_non_file(path).map_err(unreadable)?;
    // A newer version's log is not even locked: nothing of it is known.
    SegmentFiles::new(path).open_active().map_err(unreadable)?;
    let mut file = open_locked(path)?;
    let found = scan_file(&file, kept).map_err(unreadable)?;
    let damaged = |line| AuditLogError::Damaged { path: path.to_owned(), line };
    let last = match (&found.last, found.lines) {
        (_, 0) => None,
        (last, lines) => match parts(&String::from_utf8_lossy(last)) {
            Some((_, _, head)) => Some(head),
            None => return Err(damaged(lines)),
        },
    };
    let first = FirstLine::parse(&found.first);
    let (segment, head) = locate(&SegmentFiles::new(path), &file, first, last)?;
    // A log that was changed while it was being written has lines whose numbers are not their places.
    let has_stored_head =
        found.has_stored_head || head == *kept || segment.has_before(&SegmentFiles::new(path), kept);
    match found.rest {
        Rest::Nothing => Ok(OpenedLog { file, length: found.whole, head, has_stored_head, segment }),
        Rest::TooLong => Err(damaged(found.lines + 1)),
        Rest::Tail(tail) => {
            let is_ours = is_beginning(&tail, &head);
            if found.lines == 0 && !is_ours {
                return Err(damaged(1));
            }
            if let Ok(next) = head.after(&String::from_utf8_lossy(&tail)) {
                // A whole line that lost its end, in an editor, say.
                file.write_all(b"\n").map_err(unreadable)?;
                let length = found.whole + tail.len() as u64 + 1;
                let has_stored_head = has_stored_head || next == *kept;
                return Ok(OpenedLog { file, length, head: next, has_stored_head, segment });
            }
            remove_tail(path, &mut file, found.whole, &tail, is_ours).map_err(unreadable)?;
            Ok(OpenedLog { file, length: found.whole, head, has_stored_head, segment })
        }
    }
}

/// Two writers would fork the chain.
fn open_locked(path: &Path) -> Result<File, AuditLogError> {
    let unreadable = |reason| AuditLogError::Unreadable { path: path.to_owned(), reason };
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for _ in 0..MAX_OPEN_ATTEMPTS {
        let file = options.open(path).map_err(unreadable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AuditLogError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(unreadable(error)),
        }
        if is_at_path(&file, path).map_err(unreadable)? {
            return Ok(file);
        }
    }
    Err(AuditLogError::InUse { path: path.to_owned() })
}

/// Opening a pipe would wait without end, and the error for a folder is no help.
fn refuse_non_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other("something that is not a file stands there; move it away"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

struct FileScan {
    first: Vec<u8>,
    last: Vec<u8>,
    /// How many whole lines there are, and their length in bytes.
    lines: u64,
    whole: u64,
    has_stored_head: bool,
    rest: Rest,
}

/// What comes after the last whole line.
enum Rest {
    Nothing,
    Tail(Vec<u8>),
    TooLong,
}

fn scan_file(file: &File, kept: &ChainHead) -> io::Result<FileScan> {
    let mut reader = BufReader::new(file);
    let mut found = FileScan {
        first: Vec::new(),
        last: Vec::new(),
        lines: 0,
        whole: 0,
        has_stored_head: *kept == ChainHead::default(),
        rest: Rest::Nothing,
    };
    let mut line = Vec::new();
    // How many lines are in the segments before.
    let mut before = 0;
    while let Some(ending) = read_line(&mut reader, &mut line)? {
        match ending {
            Ending::Newline => {
                if found.lines == 0 {
                    found.first.clone_from(&line);
                    before = FirstLine::parse(&line).map_or(0, |first| first.seq.saturating_sub(1));
                }
                found.lines += 1;
                found.whole += line.len() as u64 + 1;
                found.has_stored_head |= before + found.lines == kept.seq && ends_as(&line, kept);
                std::mem::swap(&mut found.last, &mut line);
            }
            Ending::Missing => found.rest = Rest::Tail(std::mem::take(&mut line)),
            Ending::TooLong => {
                found.rest = Rest::TooLong;
                break;
            }
        }
    }
    Ok(found)
}

pub(super) fn ends_as(line: &[u8], head: &ChainHead) -> bool {
    parts(&String::from_utf8_lossy(line)).is_some_and(|(_, _, found)| found == *head)
}

/// Whether bytes are how the line after `head` begins.
fn is_beginning(bytes: &[u8], head: &ChainHead) -> bool {
    let expected = head.beginning();
    let common = bytes.len().min(expected.len());
    bytes[..common] == expected.as_bytes()[..common]
}

/// Removes a line that a crash has torn. What does not look like our next line is kept beside the log: after a power
/// cut it may be anything, also something that another program has written.
fn remove_tail(path: &Path, file: &mut File, whole: u64, tail: &[u8], is_ours: bool) -> io::Result<()> {
    if is_ours {
        tracing::warn!(path = %path.display(), bytes = tail.len(), "torn last line removed from the audit trail");
    } else {
        let aside = keep_aside(path, file, whole)?;
        tracing::error!(
            path = %path.display(), aside = %aside.display(), bytes = tail.len(),
            "foreign data after the last line of the audit trail was moved aside"
        );
    }
    file.set_len(whole)
}

/// Copies everything from an offset on into a new file beside the log.
fn keep_aside(path: &Path, file: &mut File, from: u64) -> io::Result<PathBuf> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 1;
    let (mut copy, aside) = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".torn-{number}"));
        match options.open(&name) {
            Ok(copy) => break (copy, PathBuf::from(name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    file.seek(SeekFrom::Start(from))?;
    io::copy(&mut Read::by_ref(file), &mut copy)?;
    copy.sync_all()?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use quarterdeck_testkit::tree;
    use serde_json::{Map, Value};

    use super::*;

    /// A log of so many lines.
    fn sample_log(lines: usize) -> (String, ChainHead) {
        let (mut text, mut head) = (String::new(), ChainHead::default());
        for number in 0..lines {
            let fields = Map::from_iter([("event".to_owned(), Value::from(format!("event {number}")))]);
            let (line, next) = head.line(&fields);
            text.push_str(&line);
            text.push('\n');
            head = next;
        }
        (text, head)
    }

    #[test]
    fn a_foreign_file_is_refused_without_losing_a_byte() {
        let (ours, _) = sample_log(3);
        let long = "x".repeat(super::super::lines::MAX_LINE_BYTES + 9);
        let files = tree("");
        let path = files.join("audit.jsonl");
        for foreign in [
            b"\x7fELF\x02\x01\x01\0\0no line end".to_vec(),
            b"one line\nand half".to_vec(),
            b"{\"level\":\"info\"}\n{\"level\":\"warn\"}\n".to_vec(),
            b"\0".repeat(5_000),
            b"\n".to_vec(),
            long.clone().into_bytes(),
            format!("{ours}{long}").into_bytes(),
            format!("{ours}a stray line\n{{\"seq\":5").into_bytes(),
            b"{\"seq\":2,\"prev\":\"".to_vec(),
        ] {
            fs::write(&path, &foreign).unwrap();
            let error = open(&path, &ChainHead::default()).unwrap_err();
            assert!(matches!(error, AuditLogError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains("was left as it was"), "{error}");
            assert!(fs::read(&path).unwrap() == foreign, "its bytes are as they were");
            assert_eq!(fs::read_dir(files.path()).unwrap().count(), 1, "and nothing stands beside it");
        }
    }

    #[test]
    fn wherever_a_line_is_torn_the_log_goes_on_after_the_last_whole_one() {
        let (ours, head) = sample_log(3);
        let starts: Vec<usize> =
            std::iter::once(0).chain(ours.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let files = tree("");
        let path = files.join("audit.jsonl");
        for cut in 0..=ours.len() {
            fs::write(&path, &ours.as_bytes()[..cut]).unwrap();
            let opened = open(&path, &head).unwrap();
            let whole = starts.iter().rev().find(|start| **start <= cut).copied().unwrap();
            // A line that lost only its end is whole.
            let whole = if starts.contains(&(cut + 1)) { cut + 1 } else { whole };
            assert_eq!(opened.length, whole as u64, "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap(), &ours.as_bytes()[..whole], "cut at {cut}");
            assert_eq!(opened.has_stored_head, whole == ours.len(), "cut at {cut}");
        }
        assert_eq!(fs::read_dir(files.path()).unwrap().count(), 1, "what was torn off was our own");
    }

    #[test]
    fn what_is_not_ours_after_the_last_line_is_kept_beside_the_log() {
        let (ours, head) = sample_log(2);
        let files = tree("");
        let path = files.join("audit.jsonl");
        for (number, tail) in [&b"\0\0\0\0\0"[..], b"{\"seq\":3,\"prev\":\"ab", b"\xff\xfe half of a letter"]
            .into_iter()
            .enumerate()
        {
            fs::write(&path, [ours.as_bytes(), tail].concat()).unwrap();
            let opened = open(&path, &head).unwrap();
            assert_eq!((&opened.head, opened.has_stored_head), (&head, true));
            assert_eq!(fs::read(&path).unwrap(), ours.as_bytes());
            let aside = files.join(&format!("audit.jsonl.torn-{}", number + 1));
            assert_eq!(fs::read(aside).unwrap(), tail);
        }
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let files = tree("");
        let error = open(files.path(), &ChainHead::default()).unwrap_err();
        assert!(error.to_string().contains("not a file"), "{error}");
    }
}
