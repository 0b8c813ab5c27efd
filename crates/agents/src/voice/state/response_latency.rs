//! How long the user waits: from the end of their speech, as our own ear has heard it, to the first audio of the answer that
//! goes to the client.

use std::time::Duration;

use tokio::time::Instant;

/// Audio that comes later than that is no answer to what was said.
pub(super) const MAX_RESPONSE_LATENCY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct ResponseLatency {
    /// When the user has stopped to speak, if no audio has come since.
    speech_ended: Option<Instant>,
    /// When the first audio came while our ear took the user to speak. A provider may notice the end of speech before we do.
    first_audio: Option<Instant>,
    is_speaking: bool,
}

impl ResponseLatency {
    pub(super) fn on_speech_started(&mut self) {
        *self = Self { is_speaking: true, ..Self::default() };
    }

    /// The user has stopped to speak at that time, which was noticed only now. Returns the latency if the answer has begun
    /// meanwhile.
    pub(super) fn on_speech_ended(&mut self, ended_at: Instant) -> Option<Duration> {
        let first_audio = self.first_audio.filter(|first_audio| *first_audio >= ended_at);
        let speech_ended = Some(ended_at).filter(|_| self.is_speaking && first_audio.is_none());
        *self = Self { speech_ended, ..Self::default() };
        first_audio.map(|first_audio| first_audio.saturating_duration_since(ended_at))
    }

    /// Audio goes to the client. Returns the latency if it is the first of an answer.
    pub(super) fn on_audio(&mut self, now: Instant) -> Option<Duration> {
        if self.is_speaking {
            self.first_audio.get_or_insert(now);
            return None;
        }
        let latency = now.saturating_duration_since(self.speech_ended.take()?);
        Some(latency).filter(|latency| *latency <= MAX_RESPONSE_LATENCY)
    }

    /// What was said is not answered by voice any more: the turn is over, or the user has written.
    pub(super) fn forget(&mut self) {
        self.speech_ended = None;
    }
}
