//! Who speaks, by how loud it is.

/// Louder than this, on the average, is speech.
const LOUD: u64 = 500;
/// So many quiet samples end it: 300 ms.
const ENOUGH: usize = 7_200;

/// Listens.
#[derive(Debug, Default)]
pub(super) struct Ears {
    is_speech: bool,
    quiet: usize,
    /// Samples that were not committed.
    pub(super) waiting: usize,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Started,
    Stopped,
}

impl Ears {
    /// Takes a piece of audio.
    pub(super) fn take(&mut self, pcm: &[u8]) -> Option<Change> {
        let (samples, _) = pcm.as_chunks::<2>();
        self.waiting += samples.len();
        let loudness: u64 = samples.iter().map(|s| u64::from(i16::from_le_bytes(*s).unsigned_abs())).sum();
        let is_loud = loudness > LOUD * samples.len() as u64;
        self.quiet = if is_loud { 0 } else { self.quiet + samples.len() };
        match self.is_speech {
            false if is_loud => {
                self.is_speech = true;
                Some(Change::Started)
            }
            true if self.quiet >= ENOUGH => {
                self.stop();
                Some(Change::Stopped)
            }
            _ => None,
        }
    }

    /// What was heard has been committed.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }
}
