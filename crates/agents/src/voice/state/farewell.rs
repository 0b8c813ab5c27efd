//! The farewell before an end that was asked for: whether its words have been heard, and until when they are waited for.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::voice::session::RequestedEnd;

/// How long a model may take for its farewell.
pub(super) const MAX_FAREWELL: Duration = Duration::from_secs(30);
/// How long a model that has ended its turn has to begin with the farewell by itself. It may have ended the turn of the call,
/// and be about to speak about the result.
const UNASKED_FAREWELL_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of what the model says is compared with the farewell.
const MAX_TRANSCRIPT_BYTES: usize = 4_000;

/// An end that was asked for.
#[derive(Debug)]
pub(super) struct Farewell {
    /// Then, unless the model is speaking or its words are still to be asked for.
    by: Instant,
    /// Then, whatever happens.
    latest: Instant,
    is_block: bool,
    /// What the user must hear, if it is known.
    words: Option<String>,
    is_requested: bool,
    /// Whether audio has reached the client since the end, or else the farewell, was asked for.
    has_audio: bool,
    /// What the model has said in the turn that asked for the end, and since.
    transcript: String,
    /// Whether it had said something before, which the user has heard.
    has_spoken: bool,
}

impl Farewell {
    pub(super) fn new(end: RequestedEnd, said_before: &str, wait: Duration, now: Instant) -> Self {
        let mut farewell = Self {
            by: now + wait,
            latest: now + MAX_FAREWELL,
            is_block: end.is_block,
            words: end.words,
            is_requested: false,
            has_audio: false,
            transcript: String::new(),
            has_spoken: !said_before.is_empty(),
        };
        farewell.add_transcript(said_before);
        farewell
    }

    /// Whether the client is blocked: it is not listened to any more.
    pub(super) fn is_block(&self) -> bool {
        self.is_block
    }

    pub(super) fn on_audio(&mut self) {
        self.has_audio = true;
    }

    pub(super) fn add_transcript(&mut self, text: &str) {
        let room = MAX_TRANSCRIPT_BYTES.saturating_sub(self.transcript.len());
        self.transcript.push_str(&text[..text.floor_char_boundary(room)]);
    }

    /// Whether the user has got to hear the farewell. What a model says by itself is compared with it, because it may have
    /// said something else; after it was asked for the very words, whatever it says counts.
    pub(super) fn is_heard(&self) -> bool {
        match &self.words {
            None => true,
            Some(_) if self.is_requested || self.transcript.is_empty() => self.has_audio,
            Some(words) => (self.has_audio || self.has_spoken) && resembles(&self.transcript, words),
        }
    }

    /// Whether the user may have heard some of it.
    pub(super) fn has_begun(&self) -> bool {
        self.is_requested || self.has_audio
    }

    /// The words that the model still has to be asked for.
    pub(super) fn unrequested(&self) -> Option<&str> {
        self.words.as_deref().filter(|_| !self.is_requested && !self.is_heard())
    }

    /// The model has ended its turn without the farewell, or was interrupted before it.
    pub(super) fn expect_words(&mut self, now: Instant) {
        if !self.is_requested {
            self.by = self.by.min(now + UNASKED_FAREWELL_TIMEOUT);
        }
    }

    /// The model has been asked to say the farewell, and has this long to begin.
    pub(super) fn on_requested(&mut self, timeout: Duration, now: Instant) {
        self.is_requested = true;
        self.has_audio = false;
        (self.by, self.latest) = (now + timeout, now + MAX_FAREWELL);
    }

    /// The end comes at the latest after this time.
    pub(super) fn end_within(&mut self, time: Duration, now: Instant) {
        (self.by, self.latest) = (now + time, now + time);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.by
    }

    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        now >= self.latest
    }
}

/// Whether at least half of a text can be found in another. A transcript never agrees to the letter, and not every script
/// puts spaces between words, so runs of three letters are compared.
pub(super) fn resembles(said: &str, words: &str) -> bool {
    let runs = |text: &str| -> HashSet<[char; 3]> {
        let letters = text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase);
        letters.collect::<Vec<_>>().windows(3).map(|run| [run[0], run[1], run[2]]).collect()
    };
    let (said, words) = (runs(said), runs(words));
    2 * words.iter().filter(|run| said.contains(*run)).count() >= words.len()
}
