//! Interrupted responses (barge-in), and what may still arrive of them.
//!
//! A user interrupts by speaking, which the provider reports; by writing, which the provider notices a moment later; or
//! by asking for silence, which some providers cannot be told. In each case more of the old response may be on its way,
//! and so may its end. None of that may be taken for the answer to what was asked since.

use std::time::Duration;

use tokio::time::Instant;

/// How long a suppressed response may give no sign before the next one is let through.
const SUPPRESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for a response that has not started, and may never.
const UNSTARTED_SUPPRESSION_TIMEOUT: Duration = Duration::from_secs(8);
/// For how long after an interruption words belong to the interrupted response. A new one takes longer to start.
const LATE_WORDS_WINDOW: Duration = Duration::from_secs(2);
/// How long after the user wrote the provider reports what it interrupted for that.
const TEXT_INTERRUPTION_WINDOW: Duration = Duration::from_secs(3);
/// The same after our own ear has heard the user.
const SPEECH_INTERRUPTION_WINDOW: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct Interruption {
    /// The user wants silence, and the provider has not ended the response yet.
    suppressed: Option<SuppressedResponse>,
    /// The user has written into a response, which the provider will report as interrupted or complete.
    is_written_into: bool,
    /// The user has written while another response was awaited, which the provider may report as interrupted.
    superseded_at: Option<Instant>,
    /// The provider has interrupted a response and will still report its end.
    interrupted_at: Option<Instant>,
    /// The user has begun to speak into a response.
    is_spoken_into: bool,
    /// Our own ear has heard the user talk over what was said before, which the provider may report a moment later.
    spoken_over_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct SuppressedResponse {
    last_sign: Instant,
    has_started: bool,
}

/// Which response a provider reports as interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptedResponse {
    /// One that the user has interrupted through us.
    Known,
    /// An older one than the user waits for.
    Older,
    Current,
}

impl Interruption {
    /// The user wants silence.
    pub(super) fn suppress(&mut self, has_started: bool, now: Instant) {
        self.suppressed = Some(SuppressedResponse { last_sign: now, has_started });
    }

    /// The user writes, into a response or while one is awaited.
    pub(super) fn on_user_text(&mut self, was_speaking: bool, was_awaited: bool, now: Instant) {
        self.is_written_into |= was_speaking;
        // A suppressed response that has not started may never come, and what comes now may be the answer to this.
        let was_unstarted = self.suppressed.take_if(|suppressed| !suppressed.has_started).is_some();
        if was_awaited || was_unstarted {
            self.superseded_at = Some(now);
        }
    }

    /// The user has begun to speak: whatever is interrupted or answered from now on is about that.
    pub(super) fn on_user_speech(&mut self, is_answering: bool) {
        self.is_spoken_into = is_answering;
        self.superseded_at = None;
        self.suppressed.take_if(|suppressed| !suppressed.has_started);
    }

    /// Our own ear has heard the user talk over a response, which is still being spoken or only still being played.
    pub(super) fn on_spoken_over(&mut self, was_speaking: bool, now: Instant) {
        match was_speaking {
            true => self.suppress(true, now),
            false => self.spoken_over_at = Some(now),
        }
    }

    /// Whether the user has spoken into the interrupted response.
    pub(super) fn take_spoken_into(&mut self) -> bool {
        std::mem::take(&mut self.is_spoken_into)
    }

    /// The provider reports an interruption. `awaits_answer` says that nothing has come yet of the answer to what was
    /// written last.
    pub(super) fn on_interrupted(
        &mut self,
        end_follows: bool,
        awaits_answer: bool,
        now: Instant,
    ) -> InterruptedResponse {
        let was_superseded = self
            .superseded_at
            .take()
            .is_some_and(|at| now.saturating_duration_since(at) < TEXT_INTERRUPTION_WINDOW);
        let was_spoken_over = self
            .spoken_over_at
            .take()
            .is_some_and(|at| now.saturating_duration_since(at) < SPEECH_INTERRUPTION_WINDOW);
        // A response that has started is interrupted before one that has not.
        let interrupted = if std::mem::take(&mut self.is_written_into) {
            InterruptedResponse::Known
        } else if was_superseded {
            InterruptedResponse::Older
        } else if self.suppressed.take_if(|suppressed| suppressed.has_started).is_some() || was_spoken_over {
            InterruptedResponse::Known
        } else if awaits_answer {
            InterruptedResponse::Older
        } else if self.suppressed.take().is_some() {
            InterruptedResponse::Known
        } else {
            InterruptedResponse::Current
        };
        if end_follows {
            self.interrupted_at = Some(now);
        }
        interrupted
    }

    /// The provider ends a turn. Returns whether it is an interrupted one.
    pub(super) fn on_turn_end(&mut self, owes_words: bool) -> bool {
        self.superseded_at = None;
        // Nothing has been said since the user wrote, so it is the end of what was said before.
        let is_older = std::mem::take(&mut self.is_written_into) && owes_words;
        self.interrupted_at.take().is_some() || is_older || self.suppressed.take().is_some()
    }

    /// A new response has started, or calls tools.
    pub(super) fn on_response(&mut self) {
        self.interrupted_at = None;
        self.spoken_over_at = None;
    }

    /// Whether audio or a call that has just come belongs to a suppressed response.
    pub(super) fn suppresses(&mut self, now: Instant) -> bool {
        let Some(suppressed) = &mut self.suppressed else { return false };
        *suppressed = SuppressedResponse { last_sign: now, has_started: true };
        true
    }

    /// The same for words, which may also be an older response's: transcripts come late.
    pub(super) fn suppresses_words(&mut self, owes_words: bool, now: Instant) -> bool {
        let is_older = self.is_written_into && owes_words;
        self.suppresses(now)
            || is_older
            || self.interrupted_at.is_some_and(|at| now.saturating_duration_since(at) < LATE_WORDS_WINDOW)
    }

    /// A provider that never ends a suppressed response does not silence the next one for ever.
    pub(super) fn expire(&mut self, now: Instant) {
        self.suppressed.take_if(|suppressed| {
            let timeout =
                if suppressed.has_started { SUPPRESSION_TIMEOUT } else { UNSTARTED_SUPPRESSION_TIMEOUT };
            now.saturating_duration_since(suppressed.last_sign) >= timeout
        });
    }
}
