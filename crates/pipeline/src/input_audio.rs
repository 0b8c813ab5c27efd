//! The user's audio: the last second of it, and the utterance that is being spoken.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Audio, HEARD_RATE};

/// What the user says, as samples.
#[derive(Debug)]
pub(crate) struct InputAudio {
    /// Audio that belongs to no utterance, the latest last.
    recent: VecDeque<i16>,
    max_recent: usize,
    utterance: Option<Vec<i16>>,
    max_utterance: usize,
}

impl InputAudio {
    pub(crate) fn new(pre_roll: Duration, max_utterance: Duration) -> Self {
        let (max_recent, max_utterance) = (samples(pre_roll), samples(max_utterance).max(1));
        Self { recent: VecDeque::new(), max_recent, utterance: None, max_utterance }
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.utterance.is_some()
    }

    /// Takes audio. Returns an utterance that has become as long as one may be; what follows is another one.
    pub(crate) fn push(&mut self, audio: &Audio<'_>) -> Option<Arc<[i16]>> {
        let bytes = pcm(audio);
        let samples = bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
        let Some(utterance) = &mut self.utterance else {
            self.recent.extend(samples);
            self.recent.drain(..self.recent.len().saturating_sub(self.max_recent));
            return None;
        };
        utterance.extend(samples);
        (utterance.len() >= self.max_utterance).then(|| std::mem::take(utterance).into())
    }

    /// The user has begun to speak; the audio of the beginning has come before. `earlier` is what they said a moment ago and
    /// belongs to the same utterance.
    pub(crate) fn begin(&mut self, earlier: Option<Arc<[i16]>>) {
        if self.utterance.is_some() {
            return;
        }
        let mut utterance = earlier.map_or_else(Vec::new, |samples| samples.to_vec());
        utterance.extend(self.recent.drain(..));
        self.utterance = Some(utterance);
    }

    /// The user has stopped. Returns what they said.
    pub(crate) fn end(&mut self) -> Option<Arc<[i16]>> {
        self.utterance.take().map(Into::into)
    }

    /// Whether an utterance of a moment ago and a new one may be one.
    pub(crate) fn has_room_for(&self, earlier: &[i16]) -> bool {
        earlier.len() + self.recent.len() <= self.max_utterance / 2
    }
}

fn samples(duration: Duration) -> usize {
    (duration.as_millis() as usize).saturating_mul(HEARD_RATE as usize) / 1_000
}

/// The samples' bytes. Base64 has been checked by the client's link; what is none is silence, not an error.
fn pcm<'a>(audio: &'a Audio<'_>) -> Cow<'a, [u8]> {
    match audio {
        Audio::Pcm(bytes) => Cow::Borrowed(bytes),
        Audio::Base64(text) => {
            Cow::Owned(base64_simd::STANDARD.decode_to_vec(text.as_bytes()).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> InputAudio {
        InputAudio::new(Duration::from_millis(1), Duration::from_millis(4))
    }

    fn pcm_of(samples: &[i16]) -> Audio<'static> {
        Audio::Pcm(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>().into())
    }

    #[test]
    fn an_utterance_begins_with_the_audio_before_it() {
        let mut input = input();
        input.push(&pcm_of(&(0..40).collect::<Vec<_>>()));
        input.begin(None);
        input.push(&pcm_of(&[40, 41]));
        let expected: Vec<i16> = (24..42).collect();
        assert_eq!(*input.end().unwrap(), *expected);
        assert!(!input.is_listening() && input.end().is_none());
    }

    #[test]
    fn audio_of_one_utterance_is_not_in_the_next() {
        let mut input = input();
        input.begin(None);
        input.push(&pcm_of(&[1; 10]));
        let first = input.end().unwrap();
        input.push(&pcm_of(&[2; 3]));
        input.begin(Some(first));
        let joined = input.end().unwrap();
        assert_eq!(*joined, [[1; 10].as_slice(), [2; 3].as_slice()].concat());
    }

    #[test]
    fn a_long_utterance_is_handed_over_in_parts() {
        let mut input = input();
        input.begin(None);
        assert!(input.push(&pcm_of(&[1; 63])).is_none());
        assert_eq!(input.push(&pcm_of(&[1; 2])).unwrap().len(), 65);
        assert!(input.is_listening());
        assert_eq!(input.end().unwrap().len(), 0);
    }

    #[test]
    fn base64_and_bytes_are_the_same() {
        let mut input = input();
        input.begin(None);
        input.push(&Audio::Base64("AQACAA==".into()));
        assert_eq!(*input.end().unwrap(), [1, 2]);
    }
}
