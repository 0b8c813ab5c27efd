//! What the client plays: how much of it the user has heard, and how much is left.
//!
//! A client reports what it has played since the last interruption. Between two reports, and for a client that reports
//! nothing, the clock tells: audio is played as fast as it is spoken.

use std::time::Duration;

use tokio::time::Instant;

/// Model audio: 24 kHz, 16 bits.
const BYTES_PER_SECOND: u64 = 48_000;
/// How long a client buffers audio before it begins to play.
const START_DELAY: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Playback {
    /// Bytes that were sent since the last interruption, or since the client came.
    sent_bytes: u64,
    /// How much of it was played at `since`, or until it was paused.
    played: Duration,
    since: Option<Instant>,
    is_paused: bool,
    /// What the client has reported last, and what it never got to play of what was sent.
    reported: Option<Duration>,
    lost: Duration,
    /// Up to where it is known to have been played.
    confirmed: Duration,
    /// Where the present answer begins, and where the one before it began and ended.
    answer: Option<Duration>,
    last_answer: Option<(Duration, Duration)>,
}

/// How much the user has heard of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::voice) struct HeardPart {
    pub(in crate::voice) heard: Duration,
    pub(in crate::voice) of: Duration,
}

impl Playback {
    /// That much audio is on its way to the client.
    pub(super) fn add(&mut self, bytes: usize, now: Instant) {
        let sent = self.sent();
        if !self.is_playing(now) {
            (self.played, self.since) = (sent, Some(now + START_DELAY));
        }
        self.answer.get_or_insert(sent);
        self.sent_bytes += bytes as u64;
    }

    /// Audio of a question of ours is on its way to the client. It is no part of an answer of the model.
    pub(super) fn add_question(&mut self, bytes: usize, now: Instant) {
        let answer = self.answer;
        self.add(bytes, now);
        self.answer = answer;
    }

    /// The client reports how much it has played.
    pub(super) fn report(&mut self, played: Duration, now: Instant) {
        self.reported = Some(played);
        self.played = (played + self.lost).min(self.sent());
        self.confirmed = self.confirmed.max(self.played);
        self.since = Some(now);
    }

    /// The client has nothing left to play.
    pub(super) fn drain(&mut self) {
        let sent = self.sent();
        if let Some(reported) = self.reported {
            self.lost = sent.saturating_sub(reported);
        }
        (self.played, self.confirmed) = (sent, sent);
    }

    /// The client throws away what it has not played, or another one has taken over.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.played = self.played(now);
        self.is_paused = true;
    }

    pub(super) fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        self.since = Some(now);
    }

    /// The turn is over, though it may still be played.
    pub(super) fn end_answer(&mut self) {
        let sent = self.sent();
        if let Some(begin) = self.answer.take() {
            self.last_answer = Some((begin, sent));
        }
    }

    /// Where the present answer begins and ends in what was sent.
    pub(super) fn answer_span(&self) -> Option<(Duration, Duration)> {
        self.answer.map(|begin| (begin, self.sent()))
    }

    /// How much has been played, as far as one can tell.
    pub(super) fn played(&self, now: Instant) -> Duration {
        let Some(since) = self.since.filter(|_| !self.is_paused) else { return self.played };
        (self.played + now.saturating_duration_since(since)).min(self.sent())
    }

    /// Whether the user hears something, or would if it were not paused.
    pub(super) fn is_playing(&self, now: Instant) -> bool {
        self.played(now) < self.sent()
    }

    /// How long the client may take to play what it has not confirmed.
    pub(super) fn unplayed(&self) -> Duration {
        self.sent().saturating_sub(self.confirmed)
    }

    /// How much was heard of the present answer, and of the one before it.
    pub(super) fn heard_parts(&self, now: Instant) -> (Option<HeardPart>, Option<HeardPart>) {
        let played = self.played(now);
        let part = |(begin, end): (Duration, Duration)| {
            let (heard, of) = (played.min(end).saturating_sub(begin), end.saturating_sub(begin));
            HeardPart { heard, of }
        };
        (self.answer.map(|begin| part((begin, self.sent()))), self.last_answer.map(part))
    }

    /// How much was heard of the answer that is being played, if one is.
    pub(super) fn heard(&self, now: Instant) -> Option<Duration> {
        let (present, last) = self.heard_parts(now);
        present.or(last.filter(|part| part.heard < part.of)).map(|part| part.heard)
    }

    fn sent(&self) -> Duration {
        Duration::from_micros(self.sent_bytes * 1_000_000 / BYTES_PER_SECOND)
    }
}
