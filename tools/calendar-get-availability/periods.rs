//! Stretches of time, and what is between them.

use jiff::{SignedDuration, Timestamp};

/// From a moment to another, which is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Period {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Period {
    pub(super) fn length(&self) -> SignedDuration {
        self.start.duration_until(self.end)
    }

    /// The part that lies in a range, if it takes any time.
    pub(super) fn cut_to(self, range: Self) -> Option<Self> {
        let cut = Self { start: self.start.max(range.start), end: self.end.min(range.end) };
        (cut.start < cut.end).then_some(cut)
    }
}

/// The same time in as few periods as possible, in order. Periods that touch become one.
pub(super) fn merge(periods: impl IntoIterator<Item = Period>) -> Vec<Period> {
    let mut sorted: Vec<Period> = periods.into_iter().collect();
    sorted.sort_unstable();
    let mut merged: Vec<Period> = Vec::with_capacity(sorted.len());
    for period in sorted {
        match merged.last_mut() {
            Some(last) if period.start <= last.end => last.end = last.end.max(period.end),
            _ => merged.push(period),
        }
    }
    merged
}

/// What is left of a range between merged periods that lie in it.
pub(super) fn gaps(range: Period, merged: &[Period]) -> Vec<Period> {
    let starts = std::iter::once(range.start).chain(merged.iter().map(|period| period.end));
    let ends = merged.iter().map(|period| period.start).chain([range.end]);
    starts.zip(ends).map(|(start, end)| Period { start, end }).filter(|gap| gap.start < gap.end).collect()
}
