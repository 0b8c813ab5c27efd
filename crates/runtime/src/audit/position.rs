//! Where a log goes on among its segments.

use std::fs;
use std::io;

use super::chain::{ChainHead, parts};
use super::error::AuditLogError;
use super::lines::{Ending, read_line};
use super::open::ends_as;
use super::segment::{FirstLine, PreviousSegment, SegmentFiles, SegmentHeader, SegmentReader, SegmentSource};

/// The segment that lines are appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentPosition {
    pub(super) number: u64,
    /// The number of its first line.
    pub(super) first: u64,
    /// Where it begins in the log, in bytes.
    pub(super) offset: u64,
    /// When it was begun; `None` before its first line.
    pub(super) day: Option<String>,
    /// Its first line; absent in the very first segment.
    pub(super) header: Option<SegmentHeader>,
}

impl SegmentPosition {
    /// The one that follows it, when it is closed with this last line and length.
    pub(super) fn next(&self, last: &ChainHead, length: u64) -> Self {
        let previous = PreviousSegment { first: self.first, last: last.seq, hash: last.hash.clone() };
        let (number, offset) = (self.number + 1, self.offset + length);
        let header = Some(SegmentHeader { segment: number, previous, offset });
        Self { number, first: last.seq + 1, offset, day: None, header }
    }

    /// Whether a line of an earlier segment is the one that the store knows as the last: after a crash just when a segment
    /// was closed, or with a store from a backup.
    pub(super) fn has_before(&self, files: &SegmentFiles, kept: &ChainHead) -> bool {
        if kept.seq >= self.first {
            return false;
        }
        let is_end =
            |header: &SegmentHeader| (header.previous.last, &header.previous.hash) == (kept.seq, &kept.hash);
        self.header.as_ref().is_some_and(is_end) || is_in_closed(files, self.number, kept).unwrap_or(false)
    }
}

/// Where the file at the path goes on, and after which line. `last` is its own last line.
pub(super) fn locate(
    files: &SegmentFiles,
    active: &fs::File,
    first: Option<FirstLine>,
    last: Option<ChainHead>,
) -> Result<(SegmentPosition, ChainHead), AuditLogError> {
    let failed = |path: &std::path::Path| {
        let path = path.to_owned();
        move |reason| AuditLogError::Unreadable { path, reason }
    };
    let mut closed = files.list().map_err(failed(files.folder()))?;
    if let Some(newest) = closed.last().copied()
        && files.is_linked(active, newest).map_err(failed(files.folder()))?
    {
        // The process ended while it closed this segment; it is begun again, with the next line.
        fs::remove_file(files.plain(newest)).map_err(failed(files.folder()))?;
        closed.remove(&newest);
    }
    let newest = closed.last().copied().unwrap_or_default();
    let Some(last) = last else {
        return match newest {
            0 => Ok((beginning(), ChainHead::default())),
            newest => after_closed(files, newest).map_err(failed(files.folder())),
        };
    };
    let position = SegmentPosition {
        // An older file in its place must not take the number of one that is closed.
        number: first.as_ref().map_or(1, FirstLine::segment).max(newest + 1),
        first: first.as_ref().map_or(1, |first| first.seq),
        offset: first.as_ref().map_or(0, FirstLine::offset),
        day: first.as_ref().map(|first| first.day().to_owned()),
        header: first.and_then(|first| first.header),
    };
    Ok((position, last))
}

fn beginning() -> SegmentPosition {
    SegmentPosition { number: 1, first: 1, offset: 0, day: None, header: None }
}

/// A log whose newest segment is closed, and the next one not begun.
fn after_closed(files: &SegmentFiles, newest: u64) -> io::Result<(SegmentPosition, ChainHead)> {
    let damaged = || io::Error::other(format!("{} is damaged; move it away", files.describe(newest)));
    let first = files.first_line(newest)?.ok_or_else(damaged)?;
    let mut source = files.open(newest)?;
    let length = source.len()?;
    let line = last_line(&mut source, length)?;
    let (_, _, head) = parts(&String::from_utf8_lossy(&line)).ok_or_else(damaged)?;
    let position = SegmentPosition {
        number: newest,
        first: first.seq,
        offset: first.offset(),
        day: None,
        header: first.header,
    };
    Ok((position.next(&head, length), head))
}

fn last_line(source: &mut SegmentSource, length: u64) -> io::Result<Vec<u8>> {
    let (mut line, mut end) = (Vec::new(), length);
    loop {
        let mut chunk = source.read_up_to(end)?;
        end -= chunk.len() as u64;
        let is_first = end == 0;
        chunk.append(&mut line);
        line = chunk;
        let content = line.strip_suffix(b"\n").unwrap_or(&line);
        let start = content.iter().rposition(|byte| *byte == b'\n');
        if start.is_some() || is_first || line.len() > super::lines::MAX_LINE_BYTES {
            return Ok(content[start.map_or(0, |start| start + 1)..].to_vec());
        }
    }
}

fn is_in_closed(files: &SegmentFiles, active: u64, kept: &ChainHead) -> io::Result<bool> {
    let closed = files.list()?;
    for segment in closed.range(..active).rev().copied() {
        let Some(first) = files.first_line(segment)? else { continue };
        if first.seq > kept.seq {
            continue;
        }
        let mut reader = SegmentReader::new(files.open(segment)?);
        let (mut line, mut number) = (Vec::new(), first.seq);
        while read_line(&mut reader, &mut line)? == Some(Ending::Newline) {
            if number == kept.seq {
                return Ok(ends_as(&line, kept));
            }
            number += 1;
        }
        return Ok(false);
    }
    // It was cut since: a store from an old backup.
    Ok(closed.first().is_none_or(|oldest| *oldest > 1) && active > 1)
}
