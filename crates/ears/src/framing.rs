//! Audio that comes in pieces of any size and encoding, cut into frames.

use std::time::Duration;

use base64_simd::{Out, STANDARD};
use quarterdeck_contracts::Audio;

/// How much audio a frame is, at any rate.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(16);
/// Samples of a frame of the user's audio, and of audio that is played to them.
pub(crate) const HEARD_FRAME: usize = 256;
pub(crate) const PLAYED_FRAME: usize = 384;

/// Base64 is decoded this much at a time: whole groups of four characters, and whole samples.
const CHUNK_CHARS: usize = 1_024;
const CHUNK_BYTES: usize = CHUNK_CHARS / 4 * 3;

/// A frame that is being filled.
#[derive(Debug)]
pub(crate) struct Framer<const N: usize> {
    samples: [i16; N],
    filled: usize,
    /// The first half of a sample that was cut in two.
    half: Option<u8>,
}

impl<const N: usize> Default for Framer<N> {
    fn default() -> Self {
        Self { samples: [0; N], filled: 0, half: None }
    }
}

impl<const N: usize> Framer<N> {
    /// Hands over every frame that the audio completes.
    pub(crate) fn push(&mut self, audio: &Audio<'_>, mut on_frame: impl FnMut(&[i16; N])) {
        match audio {
            Audio::Pcm(bytes) => self.push_bytes(bytes, &mut on_frame),
            Audio::Base64(text) => {
                let mut buffer = [0; CHUNK_BYTES];
                for chunk in text.as_bytes().chunks(CHUNK_CHARS) {
                    match STANDARD.decode(chunk, Out::from_slice(&mut buffer)) {
                        Ok(bytes) => self.push_bytes(bytes, &mut on_frame),
                        // What cannot be decoded is played as silence too, and takes as long.
                        Err(_) => self.push_bytes(&[0; CHUNK_BYTES][..chunk.len() / 4 * 3], &mut on_frame),
                    }
                }
            }
        }
    }

    /// Forgets the frame that is being filled.
    pub(crate) fn clear(&mut self) {
        (self.filled, self.half) = (0, None);
    }

    fn push_bytes(&mut self, mut bytes: &[u8], on_frame: &mut impl FnMut(&[i16; N])) {
        if let (Some(low), Some((high, rest))) = (self.half, bytes.split_first()) {
            (self.half, bytes) = (None, rest);
            self.push_sample(i16::from_le_bytes([low, *high]), on_frame);
        }
        let (samples, rest) = bytes.as_chunks();
        for sample in samples {
            self.push_sample(i16::from_le_bytes(*sample), on_frame);
        }
        self.half = self.half.or(rest.first().copied());
    }

    fn push_sample(&mut self, sample: i16, on_frame: &mut impl FnMut(&[i16; N])) {
        self.samples[self.filled] = sample;
        self.filled += 1;
        if self.filled == N {
            self.filled = 0;
            on_frame(&self.samples);
        }
    }
}

/// The mean power of samples, from 0 to 1.
pub(crate) fn power(samples: &[i16]) -> f32 {
    let sum: u64 = samples.iter().map(|sample| u64::from(sample.unsigned_abs()).pow(2)).sum();
    sum as f32 / samples.len().max(1) as f32 / (32_768.0 * 32_768.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(pieces: impl IntoIterator<Item = Audio<'static>>) -> Vec<[i16; HEARD_FRAME]> {
        let (mut framer, mut frames) = (Framer::default(), Vec::new());
        for piece in pieces {
            framer.push(&piece, |frame| frames.push(*frame));
        }
        frames
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_how_the_audio_was_cut_or_encoded(
            bytes in prop::collection::vec(any::<u8>(), 0..6_000),
            cut in 1_usize..2_000,
        ) {
            let whole = frames([Audio::Pcm(bytes.clone().into())]);
            prop_assert_eq!(whole.len(), bytes.len() / 2 / HEARD_FRAME);
            let cut_up = frames(bytes.chunks(cut).map(|piece| Audio::Pcm(piece.to_vec().into())));
            prop_assert_eq!(&whole, &cut_up);
            let encode = |piece: &[u8]| Audio::Base64(STANDARD.encode_to_string(piece).into());
            prop_assert_eq!(&whole, &frames(bytes.chunks(cut).map(encode)));
        }

        #[test]
        fn text_that_is_no_base64_counts_as_silence(text in "[ -~]{0,4000}") {
            let frames = frames([Audio::Base64(text.clone().into())]);
            prop_assert!(frames.len() <= text.len() * 3 / 4 / 2 / HEARD_FRAME);
        }
    }

    #[test]
    fn power_of_the_loudest_square_wave_is_one() {
        assert_eq!(power(&[i16::MIN; 64]), 1.0);
        assert_eq!(power(&[0; 64]), 0.0);
        assert_eq!(power(&[]), 0.0);
    }
}
