//! Finds the latest lines of a log of any length, reading from its end within a limit.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::lines::MAX_LINE_BYTES;
use super::query::{Filter, matches_filter};
use super::segment::{FirstLine, SegmentFiles, SegmentSource};

/// How many bytes of matches one search returns.
const MAX_MATCH_BYTES: usize = 4 << 20;
/// Lines of several sessions may be a moment out of order; after so many that are too old, all further ones are.
const MAX_OLD_LINES: usize = 256;

/// Which lines are wanted, and how far to look for them.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub filter: Filter,
    /// Text that they must contain, in any case.
    pub text: Option<String>,
    /// Where to begin, in bytes of all lines ever written: where an earlier search ended, or at the end of the log.
    pub before: Option<u64>,
    pub max_lines: usize,
    pub max_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditMatches {
    /// The lines, the newest first.
    pub lines: Vec<Value>,
    /// Where to go on; `None` when there is nothing older.
    pub next: Option<u64>,
    pub scanned_bytes: u64,
    /// Lines among those scanned that cannot be read: too long, or no JSON object.
    pub damaged_lines: u64,
}

/// Searches a log from its end over its segments. It blocks.
pub fn search(path: &Path, wanted: &Search) -> io::Result<AuditMatches> {
    let files = SegmentFiles::new(path);
    let active = files.open_active()?;
    let closed = files.list_closed(active.as_ref())?;
    let mut run = SearchRun::new(wanted);
    let mut has_older = !closed.is_empty();
    if let Some(active) = active {
        let offset = active.first.as_ref().map_or(0, FirstLine::offset);
        if run.search_segment(SegmentSource::Plain(active.file), offset, has_older)? {
            return Ok(run.found);
        }
    }
    let oldest = closed.first().copied();
    for segment in closed.into_iter().rev() {
        has_older = Some(segment) != oldest;
        // A segment that cannot be read is passed as a line that cannot be is.
        let opened = files.first_line(segment).and_then(|first| Ok((first, files.open(segment)?)));
        let is_done = opened.and_then(|(first, source)| {
            run.search_segment(source, first.as_ref().map_or(0, FirstLine::offset), has_older)
        });
        match is_done {
            Ok(true) => return Ok(run.found),
            Ok(false) => {}
            // It was cut since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => run.found.damaged_lines += 1,
        }
    }
    Ok(run.found)
}

/// A search on its way from segment to segment.
struct SearchRun<'a> {
    wanted: &'a Search,
    needle: Option<String>,
    found: AuditMatches,
    /// Bytes of matches.
    bytes: usize,
    /// Lines in a row that are too old.
    too_old: usize,
}

impl<'a> SearchRun<'a> {
    fn new(wanted: &'a Search) -> Self {
        let needle = wanted.text.as_deref().map(str::to_lowercase);
        Self { wanted, needle, found: AuditMatches::default(), bytes: 0, too_old: 0 }
    }

    /// Searches one segment, which begins at a position of the log; whether that is enough.
    fn search_segment(&mut self, source: SegmentSource, offset: u64, has_older: bool) -> io::Result<bool> {
        let end = offset + source.len()?;
        let begin = self.wanted.before.unwrap_or(end).min(end);
        if begin <= offset {
            return Ok(false);
        }
        let scanned_before = self.found.scanned_bytes;
        let mut lines = ReverseLines::new(source, begin - offset);
        while let Some((start, line)) = lines.previous()? {
            self.found.scanned_bytes = scanned_before + (begin - offset - start);
            self.judge(line.unwrap_or_default());
            if self.too_old >= MAX_OLD_LINES {
                return Ok(true);
            }
            let is_enough = self.found.lines.len() >= self.wanted.max_lines || self.bytes >= MAX_MATCH_BYTES;
            if is_enough || self.found.scanned_bytes >= self.wanted.max_bytes {
                self.found.next = (start > 0 || has_older).then_some(offset + start);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn judge(&mut self, line: String) {
        let is_damaged = !is_object(&line);
        self.found.damaged_lines += u64::from(is_damaged);
        if is_damaged {
            return;
        }
        let filter = &self.wanted.filter;
        if may_match(&line, filter, self.needle.as_deref())
            && let Ok(value) = serde_json::from_str::<Value>(&line)
            && matches_filter(&value, filter)
        {
            self.bytes += line.len();
            self.found.lines.push(value);
        }
        self.too_old = if is_before(&line, filter.since.as_deref()) { self.too_old + 1 } else { 0 };
    }
}

/// Whether a line is a JSON object, without making one of it.
fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
}

/// Whether a line is worth parsing, from its text alone.
fn may_match(line: &str, filter: &Filter, needle: Option<&str>) -> bool {
    let Filter { event, client, session, tool, error, .. } = filter;
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte));
    // What JSON may write in another way is left to the parser.
    let holds = |wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| !is_plain(wanted) || line.contains(wanted))
    };
    [session, client, tool, event, error].into_iter().all(holds)
        && needle.is_none_or(|needle| line.to_lowercase().contains(needle))
}

/// Whether a line is from before a time. Times are compared as text, as the lines are written.
fn is_before(line: &str, since: Option<&str>) -> bool {
    let Some(since) = since else { return false };
    let time = line.split_once("\"time\":\"").and_then(|(_, rest)| rest.split('"').next());
    time.is_some_and(|time| time < since)
}

/// The lines of a segment, the last one first.
struct ReverseLines {
    source: SegmentSource,
    /// Everything before this has not been read.
    position: u64,
    /// What was read after it and not returned yet.
    pending: Vec<u8>,
    /// Whether more than is kept of a line was read.
    is_too_long: bool,
    /// Whether the end of the last line was seen. What comes after it is still being written.
    has_end: bool,
}

impl ReverseLines {
    fn new(source: SegmentSource, position: u64) -> Self {
        Self { source, position, pending: Vec::new(), is_too_long: false, has_end: false }
    }

    /// The line before, and where it begins; without its text if that is too long or not UTF-8.
    fn previous(&mut self) -> io::Result<Option<(u64, Option<String>)>> {
        loop {
            let end = self.pending.iter().rposition(|byte| *byte == b'\n');
            if end.is_none() && self.position > 0 {
                self.read_more()?;
                continue;
            }
            let start = end.map_or(0, |end| end + 1);
            let line = self.pending.split_off(start);
            if end.is_none() && line.is_empty() {
                return Ok(None);
            }
            self.pending.truncate(end.unwrap_or(0));
            let is_whole = std::mem::replace(&mut self.has_end, true);
            let is_too_long = std::mem::take(&mut self.is_too_long);
            if is_whole {
                let line = if is_too_long { None } else { String::from_utf8(line).ok() };
                return Ok(Some((self.position + start as u64, line)));
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        if self.pending.len() > MAX_LINE_BYTES {
            self.pending.clear();
            self.is_too_long = true;
        }
        let mut chunk = self.source.read_up_to(self.position)?;
        if chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position -= chunk.len() as u64;
        chunk.append(&mut self.pending);
        self.pending = chunk;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;
    use crate::audit::{AuditEntry, AuditReader};

    fn sample_log(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn line(number: u64, session: &str) -> String {
        let time = format!("2026-01-01T00:{:02}:{:02}.000Z", number / 60 % 60, number % 60);
        format!("{}\n", json!({ "seq": number, "event": "e", "time": time, "sessionId": session }))
    }

    fn numbers(found: &AuditMatches) -> Vec<u64> {
        found.lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect()
    }

    fn wanted() -> Search {
        Search { max_lines: 100, max_bytes: u64::MAX, ..Search::default() }
    }

    #[test]
    fn pages_follow_each_other_without_a_gap() {
        let text: String =
            (1..=2_500).map(|number| line(number, &"x".repeat(number as usize % 300))).collect();
        let file = sample_log(&text);
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let found = search(file.path(), &Search { before, max_lines: 7, ..wanted() }).unwrap();
            seen.extend(numbers(&found));
            before = found.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, (1..=2_500).rev().collect::<Vec<_>>());
    }

    #[test]
    fn only_what_matches_is_found_and_what_is_being_written_is_not() {
        let text = format!("{}{}[]\nno json\n{}{{\"seq\":9", line(1, "ann"), line(2, "ben"), line(3, "Ann"));
        let file = sample_log(&text);
        let by = |change: fn(&mut Search)| {
            let mut search_for = wanted();
            change(&mut search_for);
            numbers(&search(file.path(), &search_for).unwrap())
        };
        assert_eq!(by(|_| {}), [3, 2, 1]);
        assert_eq!(search(file.path(), &wanted()).unwrap().damaged_lines, 2);
        assert_eq!(by(|wanted| wanted.filter.session = Some("ann".into())), [1]);
        assert_eq!(by(|wanted| wanted.text = Some("ANN".into())), [3, 1]);
        assert_eq!(by(|wanted| wanted.filter.since = Some("2026-01-01T00:00:02".into())), [3, 2]);
        assert_eq!(by(|wanted| wanted.filter.session = Some("\"".into())), Vec::<u64>::new());
    }

    #[test]
    fn it_looks_no_further_than_it_may_and_says_where_it_stopped() {
        let text: String = (1..=1_000).map(|number| line(number, "ann")).collect();
        let file = sample_log(&text);
        let filter = Filter { session: Some("unknown".into()), ..Filter::default() };
        let found = search(file.path(), &Search { filter, max_bytes: 10_000, ..wanted() }).unwrap();
        assert!((10_000..10_200).contains(&found.scanned_bytes), "{}", found.scanned_bytes);
        assert_eq!(found.next, Some(text.len() as u64 - found.scanned_bytes));
        let since = Some("2026-01-01T00:16:39".to_owned());
        let filter = Filter { since, ..Filter::default() };
        let found = search(file.path(), &Search { filter, ..wanted() }).unwrap();
        assert_eq!((numbers(&found), found.next), (vec![1_000, 999], None));
        assert!(found.scanned_bytes < text.len() as u64 / 2, "what is too old is not looked at");
    }

    /// The terminal reads forwards and parses every line; the deck reads backwards and only what may match.
    #[test]
    fn damaged_lines_are_counted_as_the_terminal_counts_them_whatever_is_searched_for() {
        let mut bytes = Vec::new();
        for damage in ["", "[]", "7", "{\"seq\":1", "{} {}", "\u{feff}{}", "\"x\""] {
            bytes.extend(line(1, "ann").into_bytes());
            bytes.extend(damage.as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend(b"\xff\xfe\n");
        bytes.extend(line(2, "ben").into_bytes());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();

        let mut reader = AuditReader::open(file.path()).unwrap();
        let mut damaged = 0;
        loop {
            match reader.next_entry().unwrap() {
                AuditEntry::Damaged(_) => damaged += 1,
                AuditEntry::End => break,
                AuditEntry::Line(..) | AuditEntry::Partial(_) => {}
            }
        }
        assert_eq!(damaged, 8);
        for session in [None, Some("ben"), Some("unknown")] {
            let filter = Filter { session: session.map(str::to_owned), ..Filter::default() };
            let found = search(file.path(), &Search { filter, ..wanted() }).unwrap();
            assert_eq!(found.damaged_lines, damaged, "{session:?}");
        }
        let (mut sum, mut before) = (0, None);
        loop {
            let found = search(file.path(), &Search { before, max_lines: 1, ..wanted() }).unwrap();
            sum += found.damaged_lines;
            before = found.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(sum, damaged, "pages count each line once");
    }

    #[test]
    fn a_line_that_is_too_long_is_passed() {
        let long = "x".repeat(MAX_LINE_BYTES + (1 << 20));
        let text = format!("{}{{\"seq\":7,\"x\":\"{long}\"}}\n{}", line(1, "a"), line(2, "a"));
        let found = search(sample_log(&text).path(), &wanted()).unwrap();
        assert_eq!((numbers(&found), found.damaged_lines), (vec![2, 1], 1));
        assert_eq!(search(Path::new("/nowhere/at/all"), &wanted()).unwrap(), AuditMatches::default());
    }
}
