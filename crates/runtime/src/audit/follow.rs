//! Follows a chain from its first line to its last, over the segments of a log.

use std::io;

use serde_json::Value;

use super::chain::{ChainHead, parts};
use super::gap;
use super::lines::{Ending, read_line};
use super::seal_check::SealCheck;
use super::segment::{CutRecord, FirstLine, SegmentFiles, SegmentHeader, SegmentReader, SegmentSource};
use super::verify::{AuditCut, Verification};

/// What following a chain came to.
pub(super) struct ChainCheck {
    /// The line before the first that is kept.
    start: ChainHead,
    /// The last line that holds.
    head: ChainHead,
    /// Whether the line that the store knows is in it.
    has_stored_head: bool,
    /// What is wrong with the line after it.
    fault: Option<String>,
    /// Whether the fault may be gone a moment later.
    is_unfinished: bool,
    /// The first gap that the log records.
    gap: Option<String>,
    /// The furthest cut that the log records.
    cut: Option<CutRecord>,
    seals: Option<SealCheck>,
    /// The closed segment that is being read, in words.
    place: Option<String>,
    closed_segments: u64,
}

impl ChainCheck {
    /// Before the first line.
    pub(super) fn new(kept: Option<&ChainHead>, seals: Option<SealCheck>) -> Self {
        let head = ChainHead::default();
        Self {
            has_stored_head: kept == Some(&head),
            start: head.clone(),
            head,
            fault: None,
            is_unfinished: false,
            gap: None,
            cut: None,
            seals,
            place: None,
            closed_segments: 0,
        }
    }

    /// Begins after a line that is no longer kept. A record of its cut must follow.
    pub(super) fn begin_after(&mut self, head: ChainHead, kept: Option<&ChainHead>) {
        self.start = head.clone();
        self.head = head;
        self.has_stored_head = kept == Some(&self.head);
        self.compare_seal();
    }

    /// Takes the next line; after a fault none is looked at.
    pub(super) fn take(&mut self, line: &[u8], ending: Ending, kept: Option<&ChainHead>) {
        if self.fault.is_some() {
            return;
        }
        let number = self.head.seq + 1;
        let next = match ending {
            Ending::Newline => next(&self.head, line),
            Ending::Missing if self.place.is_some() => Err("it has no end: the segment was cut off".into()),
            Ending::Missing => Err("it has no end: it is being written, or a crash has torn it, and the next start of the server takes it off".into()),
            Ending::TooLong => Err("it is longer than any line of the audit trail".into()),
        };
        match next {
            Ok((next, told)) => {
                self.head = next;
                let gap = told.as_ref().and_then(gap::describe_gap);
                self.gap = self.gap.take().or_else(|| Some(format!("line {number}: {}", gap?)));
                if let Some(cut) = told.as_ref().and_then(CutRecord::parse) {
                    self.cut = Some(cut);
                }
                self.has_stored_head |= kept == Some(&self.head);
                self.compare_seal();
            }
            Err(fault) => {
                self.set_fault(format!("line {number}: {fault}"));
                self.is_unfinished = ending == Ending::Missing && self.place.is_none();
            }
        }
    }

    fn compare_seal(&mut self) {
        if let Some(Err(fault)) = self.seals.as_mut().map(|seals| seals.compare(&self.head)) {
            self.set_fault(fault);
        }
    }

    fn set_fault(&mut self, fault: String) {
        let fault = match &self.place {
            Some(place) => format!("{place}: {fault}"),
            None => fault,
        };
        self.fault.get_or_insert(fault);
    }

    /// A fault of the files, which may be changing at this moment.
    fn set_passing_fault(&mut self, fault: String) {
        self.place = None;
        self.set_fault(fault);
        self.is_unfinished = true;
    }

    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    pub(super) fn verdict(mut self, kept: Option<&ChainHead>) -> Verification {
        let cut = self.covering_cut();
        if cut.is_some() && kept.is_some_and(|kept| kept.seq < self.start.seq) {
            // The store is older than what was cut.
            self.has_stored_head = true;
        }
        let start = || {
            (self.start.seq > 0 && cut.is_none()).then(|| {
                format!(
                    "the trail begins with line {}, and no line of it says that those before were cut: they are missing",
                    self.start.seq + 1
                )
            })
        };
        let end = || wrong_end(&self.head, kept, self.has_stored_head);
        let seals = self.seals.as_ref();
        let unseen = || seals.and_then(|seals| seals.unseen(&self.head));
        let fault = self.fault.clone().or_else(start).or_else(end).or_else(unseen).or(self.gap.clone());
        let unconfirmed = self.head.seq.saturating_sub(kept.map_or(0, |kept| kept.seq).max(self.start.seq));
        Verification {
            lines: self.head.seq - self.start.seq,
            unconfirmed,
            fault,
            closed_segments: self.closed_segments,
            cut: cut.filter(|_| self.start.seq > 0),
            seals: seals.map(|seals| seals.summary(self.closed_segments)),
        }
    }

    /// The record that everything before the first line was cut.
    fn covering_cut(&self) -> Option<AuditCut> {
        let cut = self.cut.as_ref()?;
        let is_exact = cut.last_line == self.start.seq;
        let holds = cut.last_line > self.start.seq || (is_exact && cut.last_hash == self.start.hash);
        let since = if is_exact { cut.since.clone() } else { String::new() };
        holds.then_some(AuditCut { lines: self.start.seq, since })
    }
}

/// Follows a log over its closed segments and the newest one.
pub(super) fn follow(
    chain: &mut ChainCheck,
    files: &SegmentFiles,
    kept: Option<&ChainHead>,
) -> io::Result<()> {
    let active = files.open_active()?;
    let mut segments = files.list()?;
    let newest = segments.last().copied().unwrap_or_default();
    let number = match &active {
        Some(active) if active.file.metadata()?.len() > 0 => {
            active.first.as_ref().map_or(1, FirstLine::segment)
        }
        _ => newest + 1,
    };
    if let Some(active) = &active
        && files.is_linked(&active.file, number)?
    {
        // A rotation was interrupted, or has just happened.
        segments.remove(&number);
    }
    if let Some(other) = segments.range(number..).next() {
        chain.set_passing_fault(format!(
            "{} is closed, and the newest segment, which begins with line {}, says that it is number {number}: it was replaced",
            files.describe(*other),
            active.and_then(|active| active.first).map_or(1, |first| first.seq),
        ));
        return Ok(());
    }
    for segment in segments.first().copied().unwrap_or(number)..number {
        let source = match files.open(segment) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let line = chain.head.seq + 1;
                chain.set_passing_fault(format!(
                    "segment {segment}, which begins with line {line}, is missing"
                ));
                return Ok(());
            }
            Err(error) => {
                chain.place = Some(files.describe(segment));
                chain.set_fault(format!("line {}: it cannot be read: {error}", chain.head.seq + 1));
                return Ok(());
            }
        };
        chain.place = Some(files.describe(segment));
        follow_segment(chain, source, segment, kept)?;
        if chain.fault.is_some() {
            return Ok(());
        }
        chain.closed_segments += 1;
    }
    chain.place = None;
    match active {
        Some(active) => follow_segment(chain, SegmentSource::Plain(active.file), number, kept),
        None => Ok(()),
    }
}

fn follow_segment(
    chain: &mut ChainCheck,
    source: SegmentSource,
    segment: u64,
    kept: Option<&ChainHead>,
) -> io::Result<()> {
    let is_compressed = source.is_compressed();
    let mut reader = SegmentReader::new(source);
    let (mut line, mut is_first) = (Vec::new(), true);
    loop {
        match read_line(&mut reader, &mut line) {
            Ok(None) => return Ok(()),
            Ok(Some(ending)) => {
                if std::mem::take(&mut is_first) && segment > 1 && ending == Ending::Newline {
                    check_header(chain, &line, segment, kept);
                }
                chain.take(&line, ending, kept);
            }
            // The bytes are there and are no compressed lines.
            Err(error) if is_compressed => {
                chain.set_fault(format!("line {}: it cannot be read: {error}", chain.head.seq + 1));
            }
            Err(error) => return Err(error),
        }
        if chain.fault.is_some() {
            return Ok(());
        }
    }
}

/// Whether the first line of a segment is its header, and names the segment before it as that one ends.
fn check_header(chain: &mut ChainCheck, line: &[u8], segment: u64, kept: Option<&ChainHead>) {
    // One that is no line at all is told of as such.
    let Some((seq, prev, _)) = parts(&String::from_utf8_lossy(line)) else { return };
    let Some(header) = FirstLine::parse(line).and_then(|first| first.header) else {
        // A newest segment that was begun anew tells what was lost in a gap line.
        return;
    };
    let SegmentHeader { segment: named, previous, .. } = header;
    if named != segment {
        chain.set_fault(format!(
            "line {seq}: it is the header of segment {named}, and that of segment {segment} was expected: segments were \
             exchanged or renamed"
        ));
        return;
    }
    let is_oldest = chain.head == ChainHead::default() && chain.closed_segments == 0;
    if is_oldest && seq > 1 {
        chain.begin_after(ChainHead { seq: seq - 1, hash: prev }, kept);
        return;
    }
    if previous.last > chain.head.seq {
        chain.place = None;
        chain.set_fault(format!(
            "segment {} ends at line {}, and its last line was number {}: it was cut off",
            segment - 1,
            chain.head.seq,
            previous.last
        ));
    } else if previous.hash != chain.head.hash {
        chain.place = None;
        chain.set_fault(format!(
            "segment {} ends at line {} with another hash than the header of segment {segment} names: one of them was replaced",
            segment - 1,
            chain.head.seq,
        ));
    }
}

/// The head after a line, and the line itself where it tells of a gap or a cut before it.
fn next(head: &ChainHead, line: &[u8]) -> Result<(ChainHead, Option<Value>), String> {
    let text = String::from_utf8_lossy(line);
    let next = head.after(&text)?;
    // Parsed a second time only where it may say so.
    let may_tell = text.contains("audit_gap") || text.contains("audit_cut");
    Ok((next, may_tell.then(|| serde_json::from_str(&text).ok()).flatten()))
}

fn wrong_end(head: &ChainHead, kept: Option<&ChainHead>, has_stored_head: bool) -> Option<String> {
    match kept {
        _ if has_stored_head => None,
        Some(kept) => Some(format!(
            "the trail ends at line {}, and the line {} that the store knows is not in it: it was cut off or replaced",
            head.seq, kept.seq
        )),
        None if head.seq == 0 => None,
        None => Some("the store does not know this trail, so it may have been cut off".into()),
    }
}
