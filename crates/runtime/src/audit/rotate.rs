//! When the writer closes a segment, and when it cuts those that are too old.

use std::time::Duration;

use quarterdeck_contracts::DiskError;

use super::segment::crash_point::{CrashPoint, reach};
use super::segment::{SegmentFiles, day, find_expired};
use super::watch::{AppendFile, LogFile};
use super::writer::Writer;
use crate::envelope::timestamp;

/// How long a segment that could not be closed goes on before it is tried again.
const ROTATION_BACKOFF: Duration = Duration::from_secs(30);

impl<F: AppendFile> Writer<F> {
    /// Writes the header of a segment whose file is empty. The very first one has none.
    pub(super) fn begin_segment(&mut self) {
        if let Some(header) = self.segment.header.clone()
            && self.disk.as_ref().is_some_and(|disk| disk.length() == 0)
        {
            let now = self.clock.now();
            self.segment.day = Some(day(&timestamp(now)).to_owned());
            self.append_line(header.fields(now));
        }
        if let Some(maintenance) = &self.maintenance {
            maintenance.closed(self.segment.number - 1);
        }
    }

    /// Closes the segment before the next line, if it is large enough or of another day. Where that fails, lines go on
    /// into the same one.
    pub(super) fn rotate_if_due(&mut self) {
        let Some(disk) = &self.disk else { return };
        let length = disk.length();
        let today = timestamp(self.clock.now());
        let today = day(&today);
        if length == 0 {
            self.segment.day = Some(today.to_owned());
            return;
        }
        let has_lines = self.head.seq >= self.segment.first + u64::from(self.segment.header.is_some());
        let is_of_another_day = self.settings.daily && self.segment.day.as_deref() != Some(today);
        let is_due = has_lines && (length >= self.settings.max_bytes || is_of_another_day);
        let may_try = self.retry_rotation_at.is_none_or(|at| self.clock.monotonic() >= at);
        if !is_due || !may_try {
            return;
        }
        self.retry_rotation_at = None;
        if let Err(error) = self.rotate(length) {
            let error = DiskError::explain(&error);
            tracing::error!(error, path = %self.path.display(), "audit segment could not be closed");
            self.retry_rotation_at = Some(self.clock.monotonic() + ROTATION_BACKOFF);
            return;
        }
        self.cut_expired();
    }

    fn rotate(&mut self, length: u64) -> std::io::Result<()> {
        if let Some(disk) = &mut self.disk {
            disk.sync()?;
        }
        let next = self.segment.next(&self.head, length);
        let now = self.clock.now();
        let fields = next.header.as_ref().map(|header| header.fields(now)).unwrap_or_default();
        let (mut line, head) = self.head.line(&fields);
        line.push('\n');
        let file = F::begin_next(&self.path, self.segment.number, line.as_bytes())?;
        // The file before is closed here, and with it its lock.
        self.disk = Some(LogFile::new(file, line.len() as u64));
        self.head = head;
        self.kept_lines.iter_mut().for_each(|kept| kept.add(self.head.seq, &line));
        self.segment = next;
        self.segment.day = Some(day(&timestamp(now)).to_owned());
        if let Some(maintenance) = &self.maintenance {
            maintenance.closed(self.segment.number - 1);
        }
        Ok(())
    }

    /// Records that segments are cut which are older than the log is kept, and has them removed. What cannot be recorded is
    /// not cut.
    pub(super) fn cut_expired(&mut self) {
        let Some(retain) = self.settings.retain else { return };
        let files = SegmentFiles::new(&self.path);
        let cut = match find_expired(&files, self.last_cut, self.segment.number, retain, self.clock.now()) {
            Ok(Some(cut)) => cut,
            Ok(None) => return,
            Err(error) => {
                let error = DiskError::explain(&error);
                tracing::warn!(error, path = %self.path.display(), "old audit segments could not be found");
                return;
            }
        };
        if !self.append_line(cut.fields(self.clock.now())) {
            return;
        }
        // Recorded once, however long removing them takes.
        self.last_cut = cut.last_segment;
        // On the disk before the first segment goes.
        if let Some(Err(error)) = self.disk.as_mut().map(LogFile::sync) {
            tracing::warn!(error = %error, path = %self.path.display(), "audit trail could not be synced");
            return;
        }
        reach(CrashPoint::CutRecorded);
        tracing::info!(
            path = %self.path.display(), segments = cut.last_segment + 1 - cut.first_segment,
            last_line = cut.last_line, "old audit segments are removed"
        );
        if let Some(maintenance) = &self.maintenance {
            maintenance.cut(cut.last_segment, cut.last_line);
        }
    }
}
