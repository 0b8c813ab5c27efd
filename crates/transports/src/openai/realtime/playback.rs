//! How much of an answer has arrived, and how much of it can have been played.

use std::time::Duration;

use tokio::time::Instant;

/// 24 samples of 16 bits.
const BYTES_PER_MILLISECOND: u64 = 48;

/// The audio of the answer that is being given.
#[derive(Debug, Default)]
pub(super) struct Playback {
    item: String,
    content: u64,
    /// Bytes of this item, and of those of the same answer before it.
    bytes: u64,
    before: u64,
    /// Bytes of the response that runs, or ran last.
    in_response: u64,
    /// When the last of it will have been played, if it is played as it arrives.
    ends: Option<Instant>,
}

/// Where the provider is to truncate an item, because the rest was not played.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Truncation {
    pub(super) item: String,
    pub(super) content: u64,
    pub(super) milliseconds: u64,
}

impl Playback {
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
        self.ends = Some(begins + Duration::from_millis(bytes as u64 / BYTES_PER_MILLISECOND));
    }

    /// Another answer begins; the one before it can no longer be truncated.
    pub(super) fn begin(&mut self) {
        *self = Self { ends: self.ends, ..Self::default() };
    }

    /// Another response begins, of the same answer perhaps.
    pub(super) fn response_started(&mut self) {
        self.in_response = 0;
    }

    /// Whether something of the present response has come.
    pub(super) fn has_audio(&self) -> bool {
        self.in_response > 0
    }

    pub(super) fn is_played(&self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| ends <= now)
    }

    /// Nothing more of it is played. Returns where it was truncated, if something of its last item was not heard; how much was is
    /// taken from the clock if the client does not know.
    pub(super) fn truncate(&mut self, heard: Option<Duration>, now: Instant) -> Option<Truncation> {
        let unheard = self.ends.take().map_or(Duration::ZERO, |ends| ends.saturating_duration_since(now));
        let whole = (self.before + self.bytes) / BYTES_PER_MILLISECOND;
        let heard = match heard {
            Some(heard) => u64::try_from(heard.as_millis()).unwrap_or(u64::MAX),
            None => whole.saturating_sub(u64::try_from(unheard.as_millis()).unwrap_or(u64::MAX)),
        };
        let milliseconds = heard.saturating_sub(self.before / BYTES_PER_MILLISECOND);
        if self.item.is_empty() || milliseconds >= self.bytes / BYTES_PER_MILLISECOND {
            return None;
        }
        self.bytes = milliseconds * BYTES_PER_MILLISECOND;
        Some(Truncation { item: self.item.clone(), content: self.content, milliseconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = 48_000;

    fn truncation(item: &str, milliseconds: u64) -> Option<Truncation> {
        Some(Truncation { item: item.to_owned(), content: 0, milliseconds })
    }

    #[test]
    fn unplayed_audio_is_truncated_by_the_clock() {
        let (mut playback, now) = (Playback::default(), Instant::now());
        let at = |milliseconds| now + Duration::from_millis(milliseconds);
        assert!(playback.is_played(now));
        playback.add("a", 0, 2 * SECOND, now);
        playback.add("b", 0, SECOND, now);
        playback.add("b", 0, SECOND, at(100));
        assert!(!playback.is_played(at(3_999)) && playback.is_played(at(4_000)));
        assert_eq!(playback.truncate(None, at(2_500)), truncation("b", 500));
        // It is quiet now, and what is left of it was heard.
        assert!(playback.is_played(at(2_500)));
        assert_eq!(playback.truncate(None, at(2_600)), None);
        // The client knows how much was played.
        assert_eq!(playback.truncate(Some(Duration::from_millis(2_200)), at(2_700)), truncation("b", 200));
        assert_eq!(playback.truncate(Some(Duration::from_millis(1_000)), at(2_700)), truncation("b", 0));
    }

    #[test]
    fn played_audio_is_not_truncated() {
        let (mut playback, now) = (Playback::default(), Instant::now());
        assert_eq!(playback.truncate(None, now), None);
        playback.add("a", 0, SECOND, now);
        assert_eq!(playback.truncate(Some(Duration::from_secs(7)), now), None);
        playback.add("a", 0, SECOND, now);
        assert_eq!(playback.truncate(None, now + Duration::from_secs(5)), None);
    }
}
