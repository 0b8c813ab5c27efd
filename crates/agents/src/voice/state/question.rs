//! The one question that is asked by voice: where it stands, and what was recorded of its answer.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Audio, ConfirmBy, ConfirmationRequest};
use quarterdeck_runtime::Listen;
use tokio::time::Instant;

use super::resemblance::SentAudio;
use super::samples::append_samples;
use crate::voice::spoken_answer::ExpectedAnswer;

/// Samples each millisecond of the user's audio.
const SAMPLES_PER_MS: usize = 16;
/// How much audio must have come since the client reported that all was played, before an answer may begin: what comes back
/// from a room is over by then.
const QUIET_SAMPLES: usize = 300 * SAMPLES_PER_MS;
/// How much is kept before an utterance is known to be one, and how much of that before its first voice it gets.
const MAX_PREROLL_SAMPLES: usize = 2_000 * SAMPLES_PER_MS;
const PREROLL_SAMPLES: usize = 200 * SAMPLES_PER_MS;
/// An answer of the grammar is shorter than that.
const MAX_ANSWER_SAMPLES: usize = 6_000 * SAMPLES_PER_MS;
/// How much may be held back from the model until an answer is understood.
const MAX_HELD_SAMPLES: usize = 15_000 * SAMPLES_PER_MS;
/// How often a question is asked again after something came in between, and how often it is asked for a clear answer.
const MAX_WITHDRAWALS: u8 = 2;
const MAX_UNCLEAR: u8 = 2;
/// How long the speakers have, after a question was withdrawn or not understood, to say what they were about to.
const REPEAT_DELAY: Duration = Duration::from_secs(2);

/// How questions are asked by voice in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::voice) struct SpokenQuestions {
    /// The session's language, one that there is a grammar for.
    pub(in crate::voice) language: String,
    pub(in crate::voice) listen: Listen,
    /// How long a confirmation can be resolved.
    pub(in crate::voice) lifetime: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Question {
    /// Absent where questions are not asked by voice.
    pub(super) settings: Option<SpokenQuestions>,
    pub(super) asked: Option<AskedQuestion>,
    pub(super) sent: SentAudio,
    /// Audio that the model does not get unless it turns out to be no answer.
    held: Option<Vec<i16>>,
    /// Numbers everything that is spoken or transcribed, so that what comes late is known to be late.
    last_number: u64,
}

#[derive(Debug)]
pub(super) struct AskedQuestion {
    pub(super) token: String,
    pub(super) request: Arc<ConfirmationRequest>,
    pub(super) stage: Stage,
    withdrawals: u8,
    unclear: u8,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// For a pause.
    Waiting {
        not_before: Instant,
    },
    /// It is being spoken. `ends_at` is when what was sent can have been played at the earliest.
    Speaking {
        number: u64,
        deadline: Instant,
        ends_at: Instant,
        sent_bytes: usize,
    },
    /// All of it was sent.
    Playing {
        ends_at: Instant,
    },
    Listening(Window),
    /// The answer was heard and is being understood.
    Understanding {
        number: u64,
        deadline: Instant,
        answer: HeardAnswer,
    },
    /// The decision is being taken.
    Resolving,
    /// Only the page counts any more.
    PageOnly,
}

/// The time in which an answer may begin.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) closes_at: Instant,
    recording: Vec<i16>,
    /// How many samples were heard before the recording begins.
    dropped: usize,
    /// Where the first voice of the utterance is in the recording.
    pub(super) utterance: Option<usize>,
    pub(super) answer: HeardAnswer,
}

/// What is known of an answer.
#[derive(Debug, Clone)]
pub(super) struct HeardAnswer {
    pub(super) began_at: Instant,
    /// The provider's transcript, and whether it is complete.
    pub(super) words: String,
    pub(super) is_final: bool,
}

impl Question {
    pub(super) fn new(settings: Option<SpokenQuestions>) -> Self {
        Self { settings, ..Self::default() }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn stage(&self) -> Option<&Stage> {
        self.asked.as_ref().map(|asked| &asked.stage)
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        if let Some(asked) = &mut self.asked {
            asked.stage = stage;
        }
    }

    /// Takes up another confirmation.
    pub(super) fn begin(&mut self, token: String, request: Arc<ConfirmationRequest>, now: Instant) {
        let stage = Stage::Waiting { not_before: now };
        self.asked = Some(AskedQuestion { token, request, stage, withdrawals: 0, unclear: 0 });
    }

    /// Whether the user is being asked, so that nothing else should be said.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self.stage(), None | Some(Stage::Waiting { .. } | Stage::PageOnly))
    }

    /// Whether time matters to it.
    pub(super) fn is_pending(&self) -> bool {
        !matches!(self.stage(), None | Some(Stage::PageOnly))
    }

    /// Whether the question itself is on its way to the user.
    pub(super) fn is_spoken(&self) -> bool {
        matches!(self.stage(), Some(Stage::Speaking { .. } | Stage::Playing { .. }))
    }

    pub(super) fn window(&mut self) -> Option<&mut Window> {
        match &mut self.asked.as_mut()?.stage {
            Stage::Listening(window) => Some(window),
            _ => None,
        }
    }

    /// The answer that was begun, in whichever stage it is.
    pub(super) fn answer(&mut self) -> Option<&mut HeardAnswer> {
        match &mut self.asked.as_mut()?.stage {
            Stage::Listening(window) if window.utterance.is_some() => Some(&mut window.answer),
            Stage::Understanding { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// Keeps audio of the user: for an answer, and from the model while one may be in it. Returns whether it is held back.
    pub(super) fn hear(&mut self, audio: &Audio<'_>) -> bool {
        if let Some(window) = self.window() {
            window.record(audio);
        }
        let Some(held) = &mut self.held else { return false };
        append_samples(audio, held);
        true
    }

    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    pub(super) fn holds_too_much(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.len() > MAX_HELD_SAMPLES)
    }

    pub(super) fn take_held(&mut self) -> Option<Vec<i16>> {
        self.held.take()
    }
}

impl AskedQuestion {
    pub(super) fn expected(&self) -> ExpectedAnswer {
        match self.request.confirm_by {
            ConfirmBy::Any => ExpectedAnswer::YesOrNo,
            ConfirmBy::Code | ConfirmBy::Page => ExpectedAnswer::CodeOrNo,
        }
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.unclear > 0
    }

    /// Something came in between. It is asked again in the next pause, if it was not too often.
    pub(super) fn withdraw(&mut self, now: Instant) {
        self.withdrawals += 1;
        self.stage = repeat(self.withdrawals <= MAX_WITHDRAWALS, now);
    }

    /// What was said is no answer. It is asked once more.
    pub(super) fn mark_unclear(&mut self, now: Instant) {
        self.unclear += 1;
        self.stage = repeat(self.unclear < MAX_UNCLEAR, now);
    }
}

fn repeat(may_repeat: bool, now: Instant) -> Stage {
    if may_repeat { Stage::Waiting { not_before: now + REPEAT_DELAY } } else { Stage::PageOnly }
}

impl Window {
    pub(super) fn new(now: Instant, closes_at: Instant) -> Self {
        let answer = HeardAnswer { began_at: now, words: String::new(), is_final: false };
        Self { closes_at, recording: Vec::new(), dropped: 0, utterance: None, answer }
    }

    fn record(&mut self, audio: &Audio<'_>) {
        append_samples(audio, &mut self.recording);
        if self.utterance.is_none() {
            let excess = self.recording.len().saturating_sub(MAX_PREROLL_SAMPLES);
            self.recording.drain(..excess);
            self.dropped += excess;
        }
    }

    /// The user has begun to speak, this long ago. One who began too early answers something else: `false`.
    pub(super) fn begin_utterance(&mut self, ago: Duration, now: Instant) -> bool {
        let heard = self.dropped + self.recording.len();
        let first = heard.checked_sub(ago.as_millis() as usize * SAMPLES_PER_MS);
        let Some(first) = first.filter(|first| *first >= QUIET_SAMPLES) else { return false };
        // What a client sends faster than it is spoken may be longer than what is kept.
        let Some(first) = first.checked_sub(self.dropped) else { return false };
        let excess = first.saturating_sub(PREROLL_SAMPLES);
        self.recording.drain(..excess);
        self.dropped += excess;
        self.utterance = Some(first - excess);
        self.answer.began_at = now.checked_sub(ago).unwrap_or(now);
        true
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.utterance.is_some() && self.recording.len() > MAX_ANSWER_SAMPLES
    }

    /// The utterance from its first voice to its last, which was this long ago.
    pub(super) fn voiced(&self, ago: Duration) -> &[i16] {
        let end = self.recording.len().saturating_sub(ago.as_millis() as usize * SAMPLES_PER_MS);
        self.recording.get(self.utterance.unwrap_or_default()..end).unwrap_or_default()
    }

    /// The same with what was before and after.
    pub(super) fn recording(&self) -> &[i16] {
        &self.recording
    }
}
