//! Whether a pause ends what the user has to say.

/// Tells a pause within a sentence from its end. It is asked in the call's own task, so it answers in well under a frame's
/// time; a model that takes longer runs beside it and answers from what it has found so far.
pub trait TurnEnd: Send {
    /// The user begins to speak.
    fn begin(&mut self) {}

    /// Another 16 ms of what the user says, pauses included, at 16 kHz.
    fn on_frame(&mut self, samples: &[i16; 256]) {
        let _ = samples;
    }

    /// Whether what was said so far sounds finished. Asked once in each pause, when it has become long enough to end a
    /// sentence.
    fn sounds_finished(&mut self) -> bool;
}

/// Takes every pause that is long enough for the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyPause;

impl TurnEnd for AnyPause {
    fn sounds_finished(&mut self) -> bool {
        true
    }
}
