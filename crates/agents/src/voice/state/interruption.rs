//! Answers that were cut off, and what is still to come of them.
//!
//! A person cuts an answer off by speaking, of which the provider tells; by writing, which the provider notices a moment
//! later; or by asking for silence, of which some providers cannot be told. In each case more of the old answer may be on
//! its way, and so is the word that it is over. None of that may be taken for what was asked since.

use std::time::Duration;

use tokio::time::Instant;

/// How long an answer that is not to be heard may give no sign.
const LONGEST_HUSH: Duration = Duration::from_secs(30);
/// The same for one that has not begun, and may never.
const UNBORN_HUSH: Duration = Duration::from_secs(8);
/// How long after a cut the provider says that it is over. It does so at once; a new answer takes longer to begin.
const CUT_END: Duration = Duration::from_secs(2);
/// How long after something was written the provider says what it has cut off by it.
const CUT_BY_TEXT: Duration = Duration::from_secs(3);

/// Answers that were cut off.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// The person wants silence, and the provider has not said yet that the answer is over.
    hush: Option<Hush>,
    /// The person has written into an answer, which the provider will say to be cut off or over.
    is_written_into: bool,
    /// The person has written while another answer was awaited, which the provider may say to have cut off.
    written_before: Option<Instant>,
    /// The provider has cut a turn off that it will still say to be complete.
    cut: Option<Instant>,
    /// The person has begun to speak into an answer.
    is_spoken_into: bool,
}

#[derive(Debug, Clone, Copy)]
struct Hush {
    /// When the last sign of it came.
    since: Instant,
    /// Whether anything of it has come.
    has_begun: bool,
}

/// Which answer a provider says to be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// One that the person has cut off themselves, as we know.
    Known,
    /// An older one than the person waits for.
    Older,
    /// The present one.
    Present,
}

impl Cuts {
    /// The person wants silence.
    pub(super) fn hush(&mut self, has_begun: bool) {
        self.hush = Some(Hush { since: Instant::now(), has_begun });
    }

    /// The person writes, into an answer that is being given or while one is awaited.
    pub(super) fn written(&mut self, was_speaking: bool, was_awaited: bool) {
        self.is_written_into |= was_speaking;
        // What was not to be heard and has not begun may never come, and what comes now may be the answer to this.
        let is_unborn = self.hush.take_if(|hush| !hush.has_begun).is_some();
        if was_awaited || is_unborn {
            self.written_before = Some(Instant::now());
        }
    }

    /// The person has begun to speak: whatever is cut off from now on, and whatever is answered, is about that.
    pub(super) fn spoken(&mut self, is_answering: bool) {
        self.is_spoken_into = is_answering;
        self.written_before = None;
        self.hush.take_if(|hush| !hush.has_begun);
    }

    /// Whether the person has spoken into the answer that was cut off.
    pub(super) fn was_spoken_into(&mut self) -> bool {
        std::mem::take(&mut self.is_spoken_into)
    }

    /// The provider says that an answer was cut off, and perhaps that its end follows. `awaits_answer` says that nothing
    /// has come yet of the answer to what was written last.
    pub(super) fn interrupted(&mut self, end_follows: bool, awaits_answer: bool) -> Cut {
        let was_before = self.written_before.take().is_some_and(|at| at.elapsed() < CUT_BY_TEXT);
        // What has begun is cut off before what has not.
        let cut = if std::mem::take(&mut self.is_written_into) {
            Cut::Known
        } else if was_before {
            Cut::Older
        } else if self.hush.take_if(|hush| hush.has_begun).is_some() {
            Cut::Known
        } else if awaits_answer {
            Cut::Older
        } else if self.hush.take().is_some() {
            Cut::Known
        } else {
            Cut::Present
        };
        if end_follows {
            self.cut = Some(Instant::now());
        }
        cut
    }

    /// The provider says that a turn is over. Whether it is one that was cut off.
    pub(super) fn ended(&mut self, owes_words: bool) -> bool {
        self.written_before = None;
        // Nothing has been said since the person wrote, so it is the end of what was said before.
        let is_older = std::mem::take(&mut self.is_written_into) && owes_words;
        self.cut.take().is_some() || is_older || self.hush.take().is_some()
    }

    /// A new answer begins, or calls.
    pub(super) fn answered(&mut self) {
        self.cut = None;
    }

    /// Something of an answer has come. Whether it is not to be heard.
    pub(super) fn swallows(&mut self) -> bool {
        let Some(hush) = &mut self.hush else { return false };
        *hush = Hush { since: Instant::now(), has_begun: true };
        true
    }

    /// Words have come. Whether they are an older answer's: transcripts take their own time.
    pub(super) fn swallows_words(&mut self, owes_words: bool) -> bool {
        let is_older = self.is_written_into && owes_words;
        self.swallows() || is_older || self.cut.is_some_and(|at| at.elapsed() < CUT_END)
    }

    /// A provider that never says that it is over does not silence the next answer for ever.
    pub(super) fn look_at(&mut self, now: Instant) {
        self.hush.take_if(|hush| now - hush.since >= if hush.has_begun { LONGEST_HUSH } else { UNBORN_HUSH });
    }
}
