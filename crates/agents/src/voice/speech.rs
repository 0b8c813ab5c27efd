//! Who speaks, and what of it goes through.

use std::time::Duration;

use quarterdeck_runtime::SessionState;
use tokio::time::Instant;

/// Bytes of model audio in a second: 24 kHz, 16 bits.
const BYTES_PER_SECOND: u64 = 48_000;

/// How long an answer that was cut off may take to be over.
const LONGEST_HUSH: Duration = Duration::from_secs(30);
/// How long after a cut the provider says that it is over. It does so at once; a new answer takes longer to begin.
const CUT_END: Duration = Duration::from_secs(2);

/// Who speaks, and what of it goes through.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// A turn has begun and is not over.
    pub(super) is_turn_open: bool,
    /// The model has begun to answer in this turn.
    pub(super) is_answering: bool,
    /// It waits for the results of its calls, and says nothing meanwhile.
    is_paused: bool,
    /// The model was asked something, or given a result, and has not begun to speak about it.
    pub(super) owes_words: bool,
    /// The person has cut the present answer off, and the provider has not said yet that it is over. What still comes of
    /// it is not heard.
    hushed: Option<Hush>,
    /// The person has written into an answer, and the provider will still say that it was cut off or is over.
    expects_cut: bool,
    /// The person has written again before an answer began, which the provider may say to have cut off.
    may_be_cut: bool,
    /// The person has begun to speak into an answer.
    speaks_into: bool,
    /// The provider says when the person speaks, so a transcript may come late and begins no turn.
    pub(super) is_signalled: bool,
    /// When the provider has cut a turn off that it will still say to be complete.
    cut: Option<Instant>,
    /// Bytes of audio that the page has got and has not said to have played.
    unheard: u64,
    drops_audio: bool,
    pub(super) hides_transcript: bool,
    /// Audio has come from the person since the last look.
    pub(super) mic_moved: bool,
    /// The provider thinks that the microphone is on.
    pub(super) mic_is_on: bool,
}

/// An answer that is not to be heard.
#[derive(Debug, Clone, Copy)]
struct Hush {
    since: Instant,
    /// Whether something of it was heard.
    has_begun: bool,
}

impl Speech {
    /// Takes over what a tool has asked for.
    pub(super) fn follow(&mut self, state: &SessionState) {
        self.drops_audio = state.should_suppress_audio;
        self.hides_transcript = state.should_suppress_transcript;
    }

    /// Whether the model's audio reaches the person.
    pub(super) fn lets_audio_through(&self) -> bool {
        !self.drops_audio && self.hushed.is_none()
    }

    /// That much audio is on its way to the page.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.unheard += bytes as u64;
    }

    /// The page has nothing left to play.
    pub(super) fn drained(&mut self) {
        self.unheard = 0;
    }

    /// How long the page may take to play what it has.
    pub(super) fn unheard(&self) -> Duration {
        Duration::from_millis(self.unheard * 1_000 / BYTES_PER_SECOND)
    }

    /// The model speaks, or calls.
    pub(super) fn answering(&mut self) {
        self.is_answering = true;
        self.is_paused = false;
        self.owes_words = false;
        self.may_be_cut = false;
        self.cut = None;
    }

    /// The model has every result that it waits for, and is about to speak.
    pub(super) fn resulted(&mut self) {
        self.owes_words |= !self.is_speaking();
        self.is_paused = false;
    }

    /// The person writes, into an answer that is being given or is about to be.
    pub(super) fn written_into(&mut self, was_speaking: bool) {
        self.expects_cut |= was_speaking;
        // What was not to be heard and has not begun may never come, and what comes now may be the answer to this.
        let is_unborn = self.hushed.take_if(|hush| !hush.has_begun).is_some();
        self.may_be_cut |= self.owes_words || is_unborn;
    }

    /// The person has begun to speak, perhaps into an answer, which the provider then says to have cut off.
    pub(super) fn signalled(&mut self) {
        self.is_signalled = true;
        self.speaks_into = self.is_answering;
    }

    /// Whether the person has spoken into the answer that was cut off.
    pub(super) fn was_spoken_into(&mut self) -> bool {
        std::mem::take(&mut self.speaks_into)
    }

    /// The model calls.
    pub(super) fn called(&mut self) {
        self.owes_words = false;
        self.may_be_cut = false;
        self.cut = None;
    }

    /// The model waits for the results of its calls, or goes on by itself; or what was cut off is over, and what was
    /// asked since is about to be answered.
    pub(super) fn pauses(&mut self) {
        self.is_paused = !self.is_cut_end();
    }

    /// Whether there is something to cut off: the model speaks, or is about to.
    pub(super) fn is_speaking(&self) -> bool {
        self.is_answering && !self.is_paused
    }

    /// The provider has cut a turn off, and will say that it is complete.
    pub(super) fn cut_by_provider(&mut self) {
        self.cut = Some(Instant::now());
    }

    /// Whether words that come belong to an answer that was cut off.
    pub(super) fn is_cut(&mut self) -> bool {
        let is_older = self.expects_cut && self.owes_words;
        self.swallows() || is_older || self.cut.is_some_and(|since| since.elapsed() < CUT_END)
    }

    /// The turn is over, one way or another.
    pub(super) fn turn_over(&mut self) {
        self.is_turn_open = false;
        self.is_answering = false;
        self.is_paused = false;
        self.owes_words = false;
    }

    /// The connection is gone, and with it whatever it was about to say.
    pub(super) fn model_gone(&mut self) {
        self.is_answering = false;
        self.is_paused = false;
        self.hushed = None;
        self.cut = None;
        self.expects_cut = false;
        self.may_be_cut = false;
        self.speaks_into = false;
    }

    /// The provider says that an answer was cut off. Whether that was known: the person has cut it off themselves, and by
    /// now another turn may have begun.
    pub(super) fn knows_of_cut(&mut self) -> bool {
        let may_be = std::mem::take(&mut self.may_be_cut) && self.owes_words;
        self.hushed_is_over() | std::mem::take(&mut self.expects_cut) | may_be
    }

    /// The provider says that a turn is complete. Whether it is one that was cut off, and is over already.
    pub(super) fn is_cut_end(&mut self) -> bool {
        // Nothing has been said since the person wrote, so it is the end of what was said before.
        let is_older = std::mem::take(&mut self.expects_cut) && self.owes_words;
        self.cut.take().is_some() | self.hushed_is_over() | is_older
    }

    /// The person has cut off the present answer, or one that has not begun.
    pub(super) fn hush(&mut self, has_begun: bool) {
        self.hushed = Some(Hush { since: Instant::now(), has_begun });
    }

    /// Whether what comes is still of an answer that was cut off.
    pub(super) fn is_hushed(&self) -> bool {
        self.hushed.is_some()
    }

    /// Something of an answer has come. Whether it is not to be heard.
    pub(super) fn swallows(&mut self) -> bool {
        let Some(hush) = &mut self.hushed else { return false };
        hush.has_begun = true;
        true
    }

    /// The answer that was cut off is over. Whether there was one.
    fn hushed_is_over(&mut self) -> bool {
        self.hushed.take().is_some()
    }

    /// A provider that never says so does not silence the next answer for ever.
    pub(super) fn look_at(&mut self, now: Instant) {
        self.hushed = self.hushed.filter(|hush| now - hush.since < LONGEST_HUSH);
    }

    /// Nobody says anything.
    pub(super) fn is_silent(&self) -> bool {
        !self.is_turn_open && !self.is_answering
    }

    /// Nobody says anything, and nobody is about to.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_silent() && !self.owes_words
    }
}
