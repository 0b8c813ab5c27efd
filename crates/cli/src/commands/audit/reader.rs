//! Reads the trail line by line, however long it is, and while somebody writes to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::data;
use crate::terminal::say;

/// The longest line that is read. Ours are far shorter; a longer one is damage.
const MOST_BYTES: u64 = quarterdeck_runtime::audit::MAX_LINE_BYTES as u64;

/// How much is read at once when looking for the last lines.
const CHUNK: u64 = 64 << 10;

/// A trail, at some line.
pub(super) struct Trail {
    reader: BufReader<File>,
    /// How far it has been read, in bytes.
    pub(super) offset: u64,
    /// The number of lines before it, when they were counted.
    before: Option<u64>,
}

/// What stands next in a trail.
pub(super) enum Next {
    /// A line, as it was written and as it is read.
    Line(String, Value),
    /// Something else, which has been passed.
    Damaged(String),
    /// The beginning of a line, which has not been passed: it is still being written, or was torn.
    Unfinished(String),
    /// Nothing more for now.
    End,
}

impl Trail {
    /// From the first line on.
    pub(super) fn open(data: &Path) -> anyhow::Result<Self> {
        let path = data::trail_file(data);
        data::must_exist(&path)?;
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { reader: BufReader::new(file), offset: 0, before: Some(0) })
    }

    /// From the last so many whole lines on.
    pub(super) fn open_last(data: &Path, lines: u64) -> anyhow::Result<Self> {
        let mut trail = Self::open(data)?;
        let offset = start_of_last(trail.reader.get_mut(), lines)?;
        if offset > 0 {
            trail.before = None;
            trail.offset = offset;
        }
        trail.reader.seek(SeekFrom::Start(offset))?;
        Ok(trail)
    }

    pub(super) fn next(&mut self) -> io::Result<Next> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(MOST_BYTES).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(Next::End);
        }
        let place = self.place();
        if bytes.last() != Some(&b'\n') {
            if read < MOST_BYTES {
                self.reader.seek(SeekFrom::Start(self.offset))?;
                return Ok(Next::Unfinished(format!(
                    "{place} is not whole: it is still being written, or was torn"
                )));
            }
            let rest = self.skip_line()?;
            self.passed(read + rest);
            return Ok(Next::Damaged(format!("{place} is damaged: it is longer than {MOST_BYTES} bytes")));
        }
        self.passed(read);
        bytes.pop();
        let line = String::from_utf8(bytes).ok();
        let value = line.as_deref().and_then(|line| serde_json::from_str::<Value>(line).ok());
        Ok(match (line, value) {
            (Some(line), Some(value)) if value.is_object() => Next::Line(line, value),
            _ => Next::Damaged(format!("{place} is damaged: it is not a JSON object")),
        })
    }

    fn place(&self) -> String {
        match self.before {
            Some(before) => format!("line {}", before + 1),
            None => format!("the line at byte {}", self.offset),
        }
    }

    fn passed(&mut self, bytes: u64) {
        self.offset += bytes;
        self.before = self.before.map(|before| before + 1);
    }

    /// Passes the rest of a line without keeping it.
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

/// Calls `keep` with every line to the end of the trail. What is damaged is told and passed; the answer is how many
/// lines that was. A last line without its end is told too, and is no fault: the next moment may bring it.
pub(super) fn each(
    trail: &mut Trail,
    mut keep: impl FnMut(&str, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut damaged = 0;
    loop {
        match trail.next()? {
            Next::Line(line, value) => keep(&line, &value)?,
            Next::Damaged(what) => {
                damaged += 1;
                say(&format!("warning: {what}"));
            }
            Next::Unfinished(what) => {
                say(&format!("warning: {what}"));
                return Ok(damaged);
            }
            Next::End => return Ok(damaged),
        }
    }
}

/// Where the last so many whole lines begin, found from the end.
fn start_of_last(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut seen = 0;
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        file.take(end - start).read_to_end(&mut buffer)?;
        for (index, _) in buffer.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            seen += 1;
            // The first one met ends the last line; each further one ends the line before.
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
    fn the_last_lines_are_found_from_the_end() {
        assert_eq!(last("", 3), "");
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc\n", 0), "");
        assert_eq!(last("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(last("a\nb\nto", 1), "b\nto", "what is not whole yet does not count");
        let long = "x".repeat(CHUNK as usize + 7);
        assert_eq!(last(&format!("a\n{long}\nb\n"), 2), format!("{long}\nb\n"));
    }

    #[test]
    fn what_is_no_line_is_passed_and_the_next_one_is_read() {
        let files = tree("");
        let long = "x".repeat(MOST_BYTES as usize + 5);
        files.write("audit.jsonl", format!("{{\"a\":1}}\n[]\n{long}\n{{\"b\":2}}\n{{\"to"));
        let mut trail = Trail::open(files.path()).unwrap();
        let mut seen = Vec::new();
        loop {
            seen.push(match trail.next().unwrap() {
                Next::Line(line, _) => line,
                Next::Damaged(what) | Next::Unfinished(what) => what,
                Next::End => break,
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
                "line 5 is not whole: it is still being written, or was torn",
            ]
        );
    }
}
