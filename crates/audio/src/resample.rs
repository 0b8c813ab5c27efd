//! Converts the rate of a voice to that of a call.
//!
//! Live models are sent a microphone by linear interpolation, which is enough there. A voice at 22 kHz would get mirror images
//! of its sibilants from that, so this one filters.

use std::f64::consts::PI;

/// Input samples that each output sample is made of: the more, the sharper the filter.
const TAPS: usize = 32;
/// Where the filter begins to close, as a part of the lower of the two bandwidths.
const PASS_BAND: f64 = 0.92;

/// Converts pieces that may be cut anywhere. The result begins with the first sample and has no delay.
#[derive(Debug)]
pub struct Resampler {
    /// Both rates without their common divisor.
    from: usize,
    to: usize,
    /// For each place between two input samples, the weights of those around it.
    phases: Vec<[f32; TAPS]>,
    /// Input that is still needed. The first sample is at `-TAPS / 2`, as if silence had gone before.
    pending: Vec<f32>,
    /// The next output sample's place between the input samples, in parts of `to`.
    phase: usize,
}

impl Resampler {
    /// A rate of zero is taken for one.
    pub fn new(from: u32, to: u32) -> Self {
        let divisor = greatest_common_divisor(from.max(1), to.max(1));
        let (from, to) = ((from.max(1) / divisor) as usize, (to.max(1) / divisor) as usize);
        let cutoff = PASS_BAND * (to as f64 / from as f64).min(1.);
        // The same rate needs none.
        let count = if from == to { 0 } else { to };
        let phases = (0..count).map(|phase| weights(phase as f64 / to as f64, cutoff)).collect();
        Self { from, to, phases, pending: vec![0.; TAPS / 2 - 1], phase: 0 }
    }

    /// The samples at the other rate, as far as they can be made.
    pub fn take(&mut self, samples: &[i16]) -> Vec<i16> {
        if self.from == self.to {
            return samples.to_vec();
        }
        self.pending.extend(samples.iter().map(|sample| f32::from(*sample)));
        let mut made = Vec::with_capacity(samples.len() * self.to / self.from + 1);
        let mut start = 0;
        while let Some(around) = self.pending.get(start..start + TAPS) {
            let weights = &self.phases[self.phase];
            let sum: f32 = around.iter().zip(weights).map(|(sample, weight)| sample * weight).sum();
            // `as` keeps what is too loud at the limit.
            made.push(sum.round() as i16);
            self.phase += self.from;
            start += self.phase / self.to;
            self.phase %= self.to;
        }
        self.pending.drain(..start.min(self.pending.len()));
        made
    }

    /// The samples that waited for their successors.
    pub fn finish(&mut self) -> Vec<i16> {
        if self.from == self.to { Vec::new() } else { self.take(&[0; TAPS / 2]) }
    }
}

/// A windowed sine cardinal around a place between the two middle samples.
fn weights(place: f64, cutoff: f64) -> [f32; TAPS] {
    let half = TAPS as f64 / 2.;
    let mut weights = [0_f64; TAPS];
    for (index, weight) in weights.iter_mut().enumerate() {
        let distance = index as f64 - (half - 1.) - place;
        let x = PI * distance * cutoff;
        let sinc = if x.abs() < 1e-9 { 1. } else { x.sin() / x };
        // Blackman's window.
        let angle = PI * distance / half;
        *weight = sinc * (0.42 + 0.5 * angle.cos() + 0.08 * (2. * angle).cos()).max(0.);
    }
    // A constant stays the same constant.
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| (weight / sum) as f32)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tone(frequency: f64, rate: u32) -> Vec<i16> {
        let step = 2. * PI * frequency / f64::from(rate);
        (0..rate / 2).map(|n| ((f64::from(n) * step).sin() * 10_000.) as i16).collect()
    }

    fn resample(samples: &[i16], from: u32, to: u32) -> Vec<i16> {
        let mut resampler = Resampler::new(from, to);
        let mut made = resampler.take(samples);
        made.extend(resampler.finish());
        made
    }

    /// How strong a frequency is, as a part of the tones above.
    fn strength(samples: &[i16], frequency: f64, rate: u32) -> f64 {
        let step = 2. * PI * frequency / f64::from(rate);
        let (mut sine, mut cosine) = (0., 0.);
        for (n, sample) in samples.iter().enumerate() {
            sine += f64::from(*sample) * (n as f64 * step).sin();
            cosine += f64::from(*sample) * (n as f64 * step).cos();
        }
        2. * sine.hypot(cosine) / samples.len() as f64 / 10_000.
    }

    #[test]
    fn a_tone_keeps_its_place_and_its_strength() {
        for (from, frequency) in [(22_050, 440.), (22_050, 7_000.), (16_000, 3_000.), (48_000, 3_000.)] {
            let made = resample(&tone(frequency, from), from, 24_000);
            let wanted = tone(frequency, 24_000);
            let worst = made[100..11_800].iter().zip(&wanted[100..]).map(|(a, b)| (a - b).abs()).max();
            assert!(worst < Some(60), "{from} {frequency}: {worst:?}");
        }
    }

    #[test]
    fn a_sibilant_has_no_mirror_image() {
        let made = resample(&tone(9_000., 22_050), 22_050, 24_000);
        assert!(strength(&made, 9_000., 24_000) > 0.9);
        // 22 050 less 9 000 would fold to 10 950.
        assert!(strength(&made, 10_950., 24_000) < 0.003);
        let down = resample(&tone(15_000., 48_000), 48_000, 24_000);
        assert!(strength(&down, 9_000., 24_000) < 0.003, "15 kHz would fold to 9 kHz");
    }

    #[test]
    fn the_same_rate_changes_nothing() {
        assert_eq!(resample(&[1, -2, i16::MIN, i16::MAX], 24_000, 24_000), [1, -2, i16::MIN, i16::MAX]);
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_pieces_are_cut(
            sound in prop::collection::vec(any::<i16>(), 0..300),
            cut in 0_usize..300,
            from in prop::sample::select(vec![8_000_u32, 11_025, 16_000, 22_050, 44_100, 48_000]),
        ) {
            let whole = resample(&sound, from, 24_000);
            let cut = cut.min(sound.len());
            let mut resampler = Resampler::new(from, 24_000);
            let mut made = resampler.take(&sound[..cut]);
            made.extend(resampler.take(&sound[cut..]));
            made.extend(resampler.finish());
            prop_assert_eq!(&made, &whole);
            let expected = sound.len() * 24_000 / from as usize;
            prop_assert!(made.len().abs_diff(expected) <= 1, "{} for {}", made.len(), expected);
        }
    }
}
