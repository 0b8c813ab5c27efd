//! Reads a log over its segments, from any line on, also while a server writes it.

use std::io::{self, BufRead};
use std::path::Path;

use serde_json::Value;

use super::lines::{Ending, MAX_LINE_BYTES, read_line};
use super::segment::{ActiveFile, SegmentFiles, SegmentReader, SegmentSource};

/// How often the segments are listed again because one of them was cut before it could be opened.
const MAX_LISTINGS: u32 = 8;

/// The lines of an audit log in their order.
#[derive(Debug)]
pub struct AuditReader {
    files: SegmentFiles,
    /// The number of the segment that is being read, and whether lines may still be added to it.
    segment: u64,
    is_active: bool,
    reader: SegmentReader,
    /// Where the next line begins in the segment.
    offset: u64,
    /// The number of the line before; `None` when reading did not begin with a segment.
    lines: Option<u64>,
    buffer: Vec<u8>,
}

/// What the reader came to.
#[derive(Debug, PartialEq)]
pub enum AuditEntry {
    /// The line as it was written, and its JSON.
    Line(String, Value),
    /// A damaged line that was skipped, with the reason.
    Damaged(String),
    /// The beginning of a line, which will be read again: it is still being written, or was torn.
    Partial(String),
    /// Nothing more for now.
    End,
}

impl AuditReader {
    /// Begins at the first line that is kept.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_where(path, |_, _| true)
    }

    /// Begins with the segment that has this line, or the first one that is kept.
    pub fn open_at(path: &Path, line: u64) -> io::Result<Self> {
        Self::open_where(path, |next, _| line < next)
    }

    /// Begins with the first segment that may have lines since a time, given as the log writes times.
    pub fn open_since(path: &Path, since: Option<&str>) -> io::Result<Self> {
        Self::open_where(path, |_, begun| since.is_none_or(|since| begun >= since))
    }

    /// Begins with the first segment for which `is_wanted` says so, given the first line of the one after it and when that
    /// was begun.
    fn open_where(path: &Path, is_wanted: impl Fn(u64, &str) -> bool) -> io::Result<Self> {
        for _ in 1..MAX_LISTINGS {
            match Self::try_open_where(path, &is_wanted) {
                // Listed, and cut before it was opened. Without a log there is nothing to list again.
                Err(error) if error.kind() == io::ErrorKind::NotFound && path.exists() => {}
                other => return other,
            }
        }
        Self::try_open_where(path, is_wanted)
    }

    fn try_open_where(path: &Path, is_wanted: impl Fn(u64, &str) -> bool) -> io::Result<Self> {
        let files = SegmentFiles::new(path);
        let active = files.open_active()?;
        let closed: Vec<u64> = files.list_closed(active.as_ref())?.into_iter().collect();
        for (place, segment) in closed.iter().copied().enumerate() {
            let next = match closed.get(place + 1) {
                Some(next) => files.first_line(*next).ok().flatten(),
                None => active.as_ref().and_then(|active| active.first.clone()),
            };
            if next.is_none_or(|next| is_wanted(next.seq, &next.time)) {
                return Self::begin(files, segment, None);
            }
        }
        let newest = closed.last().copied().unwrap_or_default();
        let active = active.ok_or(io::ErrorKind::NotFound)?;
        Self::begin(files, newest + 1, Some(active))
    }

    /// Begins at the last `lines` complete lines.
    pub fn open_last(path: &Path, lines: u64) -> io::Result<Self> {
        let files = SegmentFiles::new(path);
        let active = files.open_active()?;
        let closed: Vec<u64> = files.list_closed(active.as_ref())?.into_iter().collect();
        let newest = closed.last().copied().unwrap_or_default() + 1;
        let mut left = lines;
        let segments = active.into_iter().map(|active| (newest, Some(active)));
        let segments = segments.chain(closed.into_iter().rev().map(|segment| (segment, None)));
        let mut reader = None;
        for (segment, active) in segments {
            let mut begun = Self::begin(files.clone(), segment, active)?;
            let (offset, seen) = start_of_last(begun.reader.source_mut(), left)?;
            begun.start_at(offset);
            reader = Some(begun);
            left = left.saturating_sub(seen);
            if left == 0 {
                break;
            }
        }
        reader.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Begins with the newest segment, if it is given, or else with a closed one.
    fn begin(files: SegmentFiles, segment: u64, active: Option<ActiveFile>) -> io::Result<Self> {
        let is_active = active.is_some();
        let (source, first) = open_segment(&files, segment, active)?;
        let lines = Some(first.saturating_sub(1));
        let reader = SegmentReader::new(source);
        Ok(Self { files, segment, is_active, reader, offset: 0, lines, buffer: Vec::new() })
    }

    fn start_at(&mut self, offset: u64) {
        self.reader.seek(offset);
        self.offset = offset;
        if offset > 0 {
            self.lines = None;
        }
    }

    /// Whether the file that is being read is now shorter than what was read of it.
    pub fn is_cut_off(&self) -> bool {
        let is_shorter = || self.reader.source().len().is_ok_and(|length| length < self.offset);
        let is_replaced = || {
            self.files.open_active().is_ok_and(|active| {
                active.is_some_and(|active| {
                    let is_older = active.first.is_none_or(|first| first.segment() <= self.segment);
                    is_older && active.file.metadata().is_ok_and(|file| file.len() < self.offset)
                })
            })
        };
        self.is_active && (is_shorter() || is_replaced())
    }

    /// Reads the next line. It blocks.
    pub fn next_entry(&mut self) -> io::Result<AuditEntry> {
        let ending = loop {
            match read_line(&mut self.reader, &mut self.buffer) {
                Ok(Some(ending)) => break ending,
                Ok(None) if !self.is_active => match self.open_next()? {
                    None => {}
                    Some(missing) => return Ok(AuditEntry::Damaged(missing)),
                },
                Ok(None) if self.is_closed_now()? => {
                    // What was written to it just before it was closed is read first.
                    self.is_active = false;
                    self.reader.seek(self.offset);
                }
                Ok(None) => return Ok(AuditEntry::End),
                Err(error) if self.reader.source().is_compressed() => {
                    let what = format!("{} cannot be read: {error}", self.files.describe(self.segment));
                    self.reader.end();
                    return Ok(AuditEntry::Damaged(what));
                }
                Err(error) => return Err(error),
            }
        };
        let place = self.place();
        match ending {
            Ending::Missing if self.is_active => {
                self.reader.seek(self.offset);
                let what = format!("{place} is incomplete: it is still being written, or was torn");
                Ok(AuditEntry::Partial(what))
            }
            Ending::Missing => {
                self.advance(self.buffer.len() as u64);
                Ok(AuditEntry::Damaged(format!("{place} is damaged: the segment is cut off in it")))
            }
            Ending::TooLong => {
                let rest = self.skip_line()?;
                self.advance(self.buffer.len() as u64 + rest);
                let what = format!("{place} is damaged: it is longer than {MAX_LINE_BYTES} bytes");
                Ok(AuditEntry::Damaged(what))
            }
            Ending::Newline => {
                self.advance(self.buffer.len() as u64 + 1);
                let line = std::str::from_utf8(&self.buffer).ok();
                let value = line.and_then(|line| serde_json::from_str::<Value>(line).ok());
                Ok(match (line, value) {
                    (Some(line), Some(value)) if value.is_object() => {
                        AuditEntry::Line(line.to_owned(), value)
                    }
                    _ => AuditEntry::Damaged(format!("{place} is damaged: it is not a JSON object")),
                })
            }
        }
    }

    /// Whether the segment that was the newest is closed, and another one begun.
    fn is_closed_now(&self) -> io::Result<bool> {
        let first = self.files.open_active()?.and_then(|active| active.first);
        Ok(first.is_some_and(|first| first.segment() > self.segment))
    }

    /// Goes on with the segment after this one; what is missing between them, if anything.
    fn open_next(&mut self) -> io::Result<Option<String>> {
        let active = self.files.open_active()?;
        let closed = self.files.list_closed(active.as_ref())?;
        let next = closed.range(self.segment + 1..).next().copied();
        let number = next.unwrap_or_else(|| {
            let first = active.as_ref().and_then(|active| active.first.as_ref());
            first.map_or(self.segment + 1, |first| first.segment().max(self.segment + 1))
        });
        let is_active = next.is_none();
        // Retention removes the oldest first: if the segment that was just read is gone as well, those after it were cut.
        let is_cut = || closed.first().is_none_or(|oldest| *oldest > self.segment);
        let missing = (number > self.segment + 1 && !is_cut())
            .then(|| format!("segments {} to {} are missing", self.segment + 1, number - 1));
        (self.segment, self.is_active, self.offset) = (number, is_active, 0);
        if is_active && active.is_none() {
            // The next one is not begun yet.
            self.reader.end();
            return Ok(missing);
        }
        match open_segment(&self.files, number, active.filter(|_| is_active)) {
            Ok((source, first)) => {
                self.reader = SegmentReader::new(source);
                self.lines = Some(first.saturating_sub(1));
                Ok(missing)
            }
            // Cut since it was listed: the next look finds the one after it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_active => {
                self.reader.end();
                Ok(missing)
            }
            Err(error) => {
                // It is passed as an empty one is.
                self.reader.end();
                Ok(Some(format!("{} cannot be read: {error}", self.files.describe(number))))
            }
        }
    }

    fn place(&self) -> String {
        match self.lines {
            Some(lines) => format!("line {}", lines + 1),
            None => format!("the line at byte {}", self.offset),
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.offset += bytes;
        self.lines = self.lines.map(|lines| lines + 1);
    }

    /// Skips the rest of a line without buffering it.
    fn skip_line(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            let is_last = end.is_some() || buffer.is_empty();
            self.reader.consume(length);
            skipped += length as u64;
            if is_last {
                return Ok(skipped);
            }
        }
    }
}

/// A segment, and the number of its first line.
fn open_segment(
    files: &SegmentFiles,
    segment: u64,
    active: Option<ActiveFile>,
) -> io::Result<(SegmentSource, u64)> {
    let (source, first) = match active {
        Some(active) => (SegmentSource::Plain(active.file), active.first),
        None => (files.open(segment)?, files.first_line(segment)?),
    };
    Ok((source, first.map_or(1, |first| first.seq)))
}

/// The offset of the last `lines` complete lines of a segment, searched from the end, and how many there are of them.
fn start_of_last(source: &mut SegmentSource, lines: u64) -> io::Result<(u64, u64)> {
    let mut end = source.len()?;
    let mut seen = 0;
    while end > 0 {
        let chunk = source.read_up_to(end)?;
        let start = end - chunk.len() as u64;
        for (index, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            seen += 1;
            // The first line feed from the end ends the last line, each further one the line before.
            if seen > lines {
                return Ok((start + index as u64 + 1, lines));
            }
        }
        end = start;
    }
    Ok((0, seen))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    fn log(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn last(text: &str, lines: u64) -> String {
        let file: File = log(text).reopen().unwrap();
        let (start, _) = start_of_last(&mut SegmentSource::Plain(file), lines).unwrap();
        text[start as usize..].to_owned()
    }

    #[test]
    fn last_lines_are_found_from_the_end() {
        assert_eq!(last("", 3), "");
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc\n", 0), "");
        assert_eq!(last("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(last("a\nb\nto", 1), "b\nto", "a partial line does not count");
        let long = "x".repeat(300_000);
        assert_eq!(last(&format!("a\n{long}\nb\n"), 2), format!("{long}\nb\n"));
    }

    #[test]
    fn damaged_line_is_skipped_and_the_next_one_is_read() {
        let long = "x".repeat(MAX_LINE_BYTES + 5);
        let file = log(&format!("{{\"a\":1}}\n[]\n{long}\n{{\"b\":2}}\n{{\"to"));
        let mut reader = AuditReader::open(file.path()).unwrap();
        let mut seen = Vec::new();
        loop {
            seen.push(match reader.next_entry().unwrap() {
                AuditEntry::Line(line, _) => line,
                AuditEntry::Damaged(what) | AuditEntry::Partial(what) => what,
                AuditEntry::End => break,
            });
            if seen.last().is_some_and(|last| last.ends_with("torn")) {
                break;
            }
        }
        assert_eq!(
            seen,
            [
                "{\"a\":1}",
                "line 2 is damaged: it is not a JSON object",
                "line 3 is damaged: it is longer than 16777216 bytes",
                "{\"b\":2}",
                "line 5 is incomplete: it is still being written, or was torn",
            ]
        );
    }
}
