//! How much of an answer has come, and how much of it the person can have heard.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes of a millisecond: 24 samples of 16 bits.
const BYTES: u64 = 48;

/// The audio of the answer that is being given.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    item: String,
    content: u64,
    /// Bytes of this item, and of those of the same answer before it.
    bytes: u64,
    before: u64,
    /// Bytes of the response that runs, or ran last.
    in_response: u64,
    /// When the last of it will have been played, by somebody who plays it as it comes.
    ends: Option<Instant>,
}

/// Where the provider is to forget what nobody heard.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) item: String,
    pub(super) content: u64,
    pub(super) milliseconds: u64,
}

impl Spoken {
    /// More has come.
    pub(super) fn add(&mut self, item: &str, content: u64, bytes: usize, now: Instant) {
        if (item, content) != (&self.item, self.content) {
            self.before += self.bytes;
            (self.bytes, self.content) = (0, content);
            item.clone_into(&mut self.item);
        }
        self.bytes += bytes as u64;
        self.in_response += bytes as u64;
        let begins = self.ends.map_or(now, |ends| ends.max(now));
        self.ends = Some(begins + Duration::from_millis(bytes as u64 / BYTES));
    }

    /// Another answer begins. Nobody asks about the one before it any more.
    pub(super) fn begin(&mut self) {
        *self = Self { ends: self.ends, ..Self::default() };
    }

    /// Another response begins, of the same answer perhaps.
    pub(super) fn response_began(&mut self) {
        self.in_response = 0;
    }

    /// Whether something of the present response has come.
    pub(super) fn has_begun(&self) -> bool {
        self.in_response > 0
    }

    pub(super) fn is_heard(&self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| ends <= now)
    }

    /// Nothing more of it is played. Where it was cut, if something of its last item was not heard; how much was is
    /// taken from the clock if nobody knows better.
    pub(super) fn cut(&mut self, heard: Option<Duration>, now: Instant) -> Option<Cut> {
        let unheard = self.ends.take().map_or(Duration::ZERO, |ends| ends.saturating_duration_since(now));
        let whole = (self.before + self.bytes) / BYTES;
        let heard = match heard {
            Some(heard) => u64::try_from(heard.as_millis()).unwrap_or(u64::MAX),
            None => whole.saturating_sub(u64::try_from(unheard.as_millis()).unwrap_or(u64::MAX)),
        };
        let milliseconds = heard.saturating_sub(self.before / BYTES);
        if self.item.is_empty() || milliseconds >= self.bytes / BYTES {
            return None;
        }
        self.bytes = milliseconds * BYTES;
        Some(Cut { item: self.item.clone(), content: self.content, milliseconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = 48_000;

    fn cut(item: &str, milliseconds: u64) -> Option<Cut> {
        Some(Cut { item: item.to_owned(), content: 0, milliseconds })
    }

    #[test]
    fn what_came_faster_than_it_is_played_is_cut_by_the_clock() {
        let (mut spoken, now) = (Spoken::default(), Instant::now());
        let at = |milliseconds| now + Duration::from_millis(milliseconds);
        assert!(spoken.is_heard(now));
        spoken.add("a", 0, 2 * SECOND, now);
        spoken.add("b", 0, SECOND, now);
        spoken.add("b", 0, SECOND, at(100));
        assert!(!spoken.is_heard(at(3_999)) && spoken.is_heard(at(4_000)));
        assert_eq!(spoken.cut(None, at(2_500)), cut("b", 500));
        // It is quiet now, and what is left of it was heard.
        assert!(spoken.is_heard(at(2_500)));
        assert_eq!(spoken.cut(None, at(2_600)), None);
        // Somebody knows better.
        assert_eq!(spoken.cut(Some(Duration::from_millis(2_200)), at(2_700)), cut("b", 200));
        assert_eq!(spoken.cut(Some(Duration::from_millis(1_000)), at(2_700)), cut("b", 0));
    }

    #[test]
    fn what_was_heard_is_not_cut() {
        let (mut spoken, now) = (Spoken::default(), Instant::now());
        assert_eq!(spoken.cut(None, now), None);
        spoken.add("a", 0, SECOND, now);
        assert_eq!(spoken.cut(Some(Duration::from_secs(7)), now), None);
        spoken.add("a", 0, SECOND, now);
        assert_eq!(spoken.cut(None, now + Duration::from_secs(5)), None);
    }
}
