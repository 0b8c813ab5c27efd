//! Where tests stop a process. In the product it does nothing.

/// A moment between two changes of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::audit) enum CrashPoint {
    NextBegun,
    NextWritten,
    SegmentLinked,
    ActiveReplaced,
    SealWritten,
    CutRecorded,
    SegmentRemoved,
    BlockCompressed,
    CompressedWritten,
    CompressedNamed,
    PlainRemoved,
}

#[cfg(not(test))]
pub(in crate::audit) fn reach(_: CrashPoint) {}

#[cfg(test)]
pub(in crate::audit) use armed::{ALL, arm, reach};

#[cfg(test)]
mod armed {
    use std::cell::Cell;

    use super::CrashPoint;

    pub(in crate::audit) const ALL: [CrashPoint; 11] = [
        CrashPoint::NextBegun,
        CrashPoint::NextWritten,
        CrashPoint::SegmentLinked,
        CrashPoint::ActiveReplaced,
        CrashPoint::SealWritten,
        CrashPoint::CutRecorded,
        CrashPoint::SegmentRemoved,
        CrashPoint::BlockCompressed,
        CrashPoint::CompressedWritten,
        CrashPoint::CompressedNamed,
        CrashPoint::PlainRemoved,
    ];

    thread_local! {
        static ARMED: Cell<Option<CrashPoint>> = const { Cell::new(None) };
    }

    /// Stops this thread when it next comes to the point, by a panic: no code that cleans up after an error runs.
    pub(in crate::audit) fn arm(point: Option<CrashPoint>) {
        ARMED.set(point);
    }

    pub(in crate::audit) fn reach(point: CrashPoint) {
        if ARMED.get() == Some(point) {
            ARMED.set(None);
            std::panic::resume_unwind(Box::new(point));
        }
    }
}
