//! Whether an utterance is a recording of what was sent to the client.
//!
//! Loudness in a few bands is compared, frame by frame, at every offset: a room and a loudspeaker change the waveform and the
//! balance of the bands, and leave the pattern.

use std::collections::VecDeque;

use quarterdeck_contracts::Audio;

use super::samples::append_samples;

/// 16 ms at 16 kHz and at 24 kHz, so that the bins of both are 62.5 Hz apart.
const HEARD_FRAME: usize = 256;
const SENT_FRAME: usize = 384;
/// The bands as bins: 250 to 3,250 Hz, which every microphone and loudspeaker carries.
const BANDS: [(usize, usize); 6] = [(4, 7), (7, 11), (11, 16), (16, 24), (24, 36), (36, 52)];
/// Every second bin is enough of a band.
const BIN_STEP: usize = 2;
/// How much of what was sent is remembered: a minute.
const MAX_SENT_FRAMES: usize = 3_750;
/// From which correlation on an utterance is taken for a recording. Between what synthetic voices gave, 0.87 at least for the same
/// and 0.66 at most for another within twenty seconds; not measured with people yet.
const MIN_CORRELATION: f32 = 0.8;
/// Fewer frames than that resemble anything.
const MIN_FRAMES: usize = 8;

/// The loudness of each band: the fourth root of its power, in which the loud parts count and the noise of a room does not.
type Frame = [u16; BANDS.len()];

/// What was sent to the client last.
#[derive(Debug, Default)]
pub(super) struct SentAudio {
    frames: VecDeque<Frame>,
    /// Samples of a frame that is not complete.
    rest: Vec<i16>,
}

impl SentAudio {
    pub(super) fn add(&mut self, audio: &Audio<'_>) {
        append_samples(audio, &mut self.rest);
        let whole = self.rest.len() / SENT_FRAME * SENT_FRAME;
        for samples in self.rest[..whole].chunks_exact(SENT_FRAME) {
            if self.frames.len() == MAX_SENT_FRAMES {
                self.frames.pop_front();
            }
            self.frames.push_back(analyse(samples));
        }
        self.rest.drain(..whole);
    }

    /// Whether an utterance of 16 kHz, without the silence around it, resembles a part of what was sent.
    pub(super) fn resembles(&self, utterance: &[i16]) -> bool {
        let heard: Vec<Frame> = utterance.chunks_exact(HEARD_FRAME).map(analyse).collect();
        heard.len() < MIN_FRAMES || self.correlation(&heard) >= MIN_CORRELATION
    }

    /// The best correlation at any offset.
    fn correlation(&self, heard: &[Frame]) -> f32 {
        let sent: Vec<Frame> = self.frames.iter().copied().collect();
        let (centred, energy) = centre(heard);
        let at_offset = |part: &[Frame]| {
            let (mut product, mut sent_energy) = (0.0, 0.0);
            for band in 0..BANDS.len() {
                let (mut sum, mut squares) = (0.0, 0.0);
                for (own, other) in centred.iter().zip(part) {
                    let other = f32::from(other[band]);
                    product += own[band] * other;
                    sum += other;
                    squares += other * other;
                }
                sent_energy += squares - sum * sum / part.len() as f32;
            }
            let scale = (energy * sent_energy).sqrt();
            if scale > f32::EPSILON { product / scale } else { 0.0 }
        };
        sent.windows(heard.len().max(1)).map(at_offset).fold(0.0, f32::max)
    }
}

/// The frames with the mean of each band taken away, and their energy.
fn centre(frames: &[Frame]) -> (Vec<[f32; BANDS.len()]>, f32) {
    let count = frames.len().max(1) as f32;
    let mut means = [0.0; BANDS.len()];
    for frame in frames {
        means.iter_mut().zip(frame).for_each(|(mean, value)| *mean += f32::from(*value) / count);
    }
    let centred: Vec<_> =
        frames.iter().map(|frame| std::array::from_fn(|band| f32::from(frame[band]) - means[band])).collect();
    let energy = centred.iter().flatten().map(|value: &f32| value * value).sum();
    (centred, energy)
}

fn analyse(samples: &[i16]) -> Frame {
    let band_power = |(first, last): (usize, usize)| -> f32 {
        (first..last).step_by(BIN_STEP).map(|bin| bin_power(samples, bin)).sum()
    };
    BANDS.map(|band| (band_power(band).powf(0.25) * 10_000.0) as u16)
}

/// The power of one bin of the spectrum, by Goertzel's recurrence, from 0 to 1.
fn bin_power(samples: &[i16], bin: usize) -> f32 {
    let turn = 2.0 * (std::f32::consts::TAU * bin as f32 / samples.len() as f32).cos();
    let (mut last, mut before) = (0.0_f32, 0.0_f32);
    for sample in samples {
        let next = f32::from(*sample) / 32_768.0 + turn * last - before;
        (last, before) = (next, last);
    }
    let power = last * last + before * before - turn * last * before;
    power.max(0.0) / (samples.len() as f32 / 2.0).powi(2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quarterdeck_testkit::sound::{Noise, speech};

    use super::*;

    fn pcm(samples: &[i16]) -> Audio<'static> {
        Audio::Pcm(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>().into())
    }

    fn sent(seconds: u64) -> SentAudio {
        let mut sent = SentAudio::default();
        for piece in speech(Duration::from_secs(seconds), 0.3, 24_000).chunks(1_000) {
            sent.add(&pcm(piece));
        }
        sent
    }

    /// A part of the same speech as a microphone has it: later, weaker, with noise.
    fn recorded(from_ms: usize, length_ms: usize) -> Vec<i16> {
        let mut noise = Noise(3);
        let all = speech(Duration::from_secs(20), 0.3, 16_000);
        let part = &all[from_ms * 16 + 101..(from_ms + length_ms) * 16 + 101];
        part.iter().map(|sample| (f32::from(*sample) * 0.3 + noise.sample() * 60.0) as i16).collect()
    }

    #[test]
    fn a_part_of_what_was_sent_resembles_it_through_a_loudspeaker_too() {
        let sent = sent(20);
        for (from, length) in [(2_003, 400), (5_111, 700), (9_500, 2_000), (12_345, 300)] {
            assert!(sent.resembles(&recorded(from, length)), "{from} {length}");
        }
    }

    #[test]
    fn another_voice_does_not_resemble_what_was_sent() {
        let sent = sent(20);
        // The same syllables, a quarter faster and higher.
        let user = speech(Duration::from_secs(5), 0.4, 12_800);
        for length in [400, 600, 1_000] {
            assert!(!sent.resembles(&user[3_000..3_000 + length * 16]), "{length}");
        }
        assert!(!SentAudio::default().resembles(&user[..8_000]), "nothing was sent");
    }

    #[test]
    fn what_is_too_short_to_compare_resembles_anything() {
        assert!(SentAudio::default().resembles(&[0; 1_000]));
    }

    #[test]
    fn a_minute_is_remembered_and_no_more() {
        let mut sent = SentAudio::default();
        let second = pcm(&[0; 24_000]);
        (0..70).for_each(|_| sent.add(&second));
        assert_eq!(sent.frames.len(), MAX_SENT_FRAMES);
        assert!(sent.rest.len() < SENT_FRAME);
    }
}
