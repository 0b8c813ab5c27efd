//! How long a user waits: from the end of their speech to the first audio of the answer.

use std::time::Duration;

use tokio::time::Instant;

/// The stages of the answer that is awaited.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    speech_ended: Option<Instant>,
    transcript: Option<Duration>,
    first_token: Option<Duration>,
}

impl Latency {
    pub(crate) fn on_speech_ended(&mut self, now: Instant) {
        *self = Self { speech_ended: Some(now), ..Self::default() };
    }

    pub(crate) fn on_transcript(&mut self, now: Instant) {
        self.transcript = self.since(now);
    }

    pub(crate) fn on_token(&mut self, now: Instant) {
        self.first_token = self.first_token.or(self.since(now));
    }

    /// Reports the figures with the first audio. They are of spoken turns only.
    pub(crate) fn on_audio(&mut self, model: &str, now: Instant) {
        let Some(first_audio) = self.since(now) else { return };
        let milliseconds = |stage: Option<Duration>| stage.map(|stage| stage.as_millis() as u64);
        tracing::debug!(
            model,
            transcript_ms = milliseconds(self.transcript),
            first_token_ms = milliseconds(self.first_token),
            first_audio_ms = first_audio.as_millis() as u64,
            "end of speech to first audio"
        );
        *self = Self::default();
    }

    fn since(&self, now: Instant) -> Option<Duration> {
        self.speech_ended.map(|ended| now.saturating_duration_since(ended))
    }
}
