//! Reads a log from any line on, also while a server writes it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::lines::{Ending, MAX_LINE_BYTES, read_line};

/// Bytes per read when searching backwards for the last lines.
const CHUNK_BYTES: u64 = 64 << 10;

/// The lines of an audit log in their order.
#[derive(Debug)]
pub struct AuditReader {
    reader: BufReader<File>,
    offset: u64,
    /// Lines read so far; `None` when reading did not begin at the first.
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
    /// Begins at the first line.
    pub fn open(path: &Path) -> io::Result<Self> {
        let reader = BufReader::new(File::open(path)?);
        Ok(Self { reader, offset: 0, lines: Some(0), buffer: Vec::new() })
    }

    /// Begins at the last `lines` complete lines.
    pub fn open_last(path: &Path, lines: u64) -> io::Result<Self> {
        let mut reader = Self::open(path)?;
        let offset = start_of_last(reader.reader.get_mut(), lines)?;
        if offset > 0 {
            reader.lines = None;
            reader.offset = offset;
        }
        reader.reader.seek(SeekFrom::Start(offset))?;
        Ok(reader)
    }

    /// How many bytes have been read. A file that is shorter was cut off or replaced.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next line. It blocks.
    pub fn next_entry(&mut self) -> io::Result<AuditEntry> {
        let Some(ending) = read_line(&mut self.reader, &mut self.buffer)? else {
            return Ok(AuditEntry::End);
        };
        let place = self.place();
        match ending {
            Ending::Missing => {
                self.reader.seek(SeekFrom::Start(self.offset))?;
                let what = format!("{place} is incomplete: it is still being written, or was torn");
                Ok(AuditEntry::Partial(what))
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

/// The offset of the last `lines` complete lines, searched from the end.
fn start_of_last(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut seen = 0;
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        file.take(end - start).read_to_end(&mut buffer)?;
        for (index, _) in buffer.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            seen += 1;
            // The first line feed from the end ends the last line, each further one the line before.
            if seen > lines {
                return Ok(start + index as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn log(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn last(text: &str, lines: u64) -> String {
        let mut file = log(text).reopen().unwrap();
        let start = start_of_last(&mut file, lines).unwrap();
        text[start as usize..].to_owned()
    }

    #[test]
    fn last_lines_are_found_from_the_end() {
        assert_eq!(last("", 3), "");
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc\n", 0), "");
        assert_eq!(last("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(last("a\nb\nto", 1), "b\nto", "a partial line does not count");
        let long = "x".repeat(CHUNK_BYTES as usize + 7);
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
