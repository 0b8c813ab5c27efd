//! Reads the audit log line by line, also while a server writes it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::data;
use crate::terminal::info;

/// A longer line is damage.
const MAX_LINE_BYTES: u64 = quarterdeck_runtime::audit::MAX_LINE_BYTES as u64;

/// Bytes per read when searching backwards for the last lines.
const CHUNK_BYTES: u64 = 64 << 10;

pub(super) struct AuditReader {
    reader: BufReader<File>,
    /// Bytes read so far.
    pub(super) offset: u64,
    /// Lines read so far; `None` when reading did not begin at the first.
    lines: Option<u64>,
}

pub(super) enum Entry {
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
    pub(super) fn open(data: &Path) -> anyhow::Result<Self> {
        let path = data::audit_file(data);
        data::require_file(&path)?;
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { reader: BufReader::new(file), offset: 0, lines: Some(0) })
    }

    /// Begins at the last `lines` complete lines.
    pub(super) fn open_last(data: &Path, lines: u64) -> anyhow::Result<Self> {
        let mut reader = Self::open(data)?;
        let offset = start_of_last(reader.reader.get_mut(), lines)?;
        if offset > 0 {
            reader.lines = None;
            reader.offset = offset;
        }
        reader.reader.seek(SeekFrom::Start(offset))?;
        Ok(reader)
    }

    pub(super) fn next(&mut self) -> io::Result<Entry> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(Entry::End);
        }
        let place = self.place();
        if bytes.last() != Some(&b'\n') {
            if read < MAX_LINE_BYTES {
                self.reader.seek(SeekFrom::Start(self.offset))?;
                return Ok(Entry::Partial(format!(
                    "{place} is incomplete: it is still being written, or was torn"
                )));
            }
            let rest = self.skip_line()?;
            self.advance(read + rest);
            return Ok(Entry::Damaged(format!(
                "{place} is damaged: it is longer than {MAX_LINE_BYTES} bytes"
            )));
        }
        self.advance(read);
        bytes.pop();
        let line = String::from_utf8(bytes).ok();
        let value = line.as_deref().and_then(|line| serde_json::from_str::<Value>(line).ok());
        Ok(match (line, value) {
            (Some(line), Some(value)) if value.is_object() => Entry::Line(line, value),
            _ => Entry::Damaged(format!("{place} is damaged: it is not a JSON object")),
        })
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

/// Calls `handle` with every line up to the end. Damaged lines are warned about and counted. A partial last line is
/// warned about and is no fault, because it may still be being written.
pub(super) fn for_each_line(
    reader: &mut AuditReader,
    mut handle: impl FnMut(&str, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut damaged = 0;
    loop {
        match reader.next()? {
            Entry::Line(line, value) => handle(&line, &value)?,
            Entry::Damaged(what) => {
                damaged += 1;
                info(&format!("warning: {what}"));
            }
            Entry::Partial(what) => {
                info(&format!("warning: {what}"));
                return Ok(damaged);
            }
            Entry::End => return Ok(damaged),
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
    use quarterdeck_testkit::tree;

    use super::*;

    fn last(text: &str, lines: u64) -> String {
        let files = tree("");
        files.write("trail", text);
        let mut file = File::open(files.join("trail")).unwrap();
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
        let files = tree("");
        let long = "x".repeat(MAX_LINE_BYTES as usize + 5);
        files.write("audit.jsonl", format!("{{\"a\":1}}\n[]\n{long}\n{{\"b\":2}}\n{{\"to"));
        let mut reader = AuditReader::open(files.path()).unwrap();
        let mut seen = Vec::new();
        loop {
            seen.push(match reader.next().unwrap() {
                Entry::Line(line, _) => line,
                Entry::Damaged(what) | Entry::Partial(what) => what,
                Entry::End => break,
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
