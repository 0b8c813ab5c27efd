//! Converts sample rates.

/// Converts to another rate by linear interpolation. That is enough for speech that goes up, or a little down: what a
/// filter would add is not audible in a call.
///
/// Pieces may be cut anywhere, between samples: a piece begins where the one before it ended.
#[derive(Debug, Clone)]
pub struct Resampler {
    from: u64,
    to: u64,
    /// The last input sample.
    last: Option<i16>,
    /// How far behind the last input sample the next output sample lies, in parts of `to` per sample.
    behind: u64,
}

impl Resampler {
    /// A resampler between two rates, neither of which is zero.
    pub fn new(from: u32, to: u32) -> Self {
        Self { from: u64::from(from.max(1)), to: u64::from(to.max(1)), last: None, behind: 0 }
    }

    /// The input rate.
    pub fn from(&self) -> u32 {
        self.from as u32
    }

    /// Converts 16-bit little-endian samples.
    pub fn take(&mut self, pcm: &[u8]) -> Vec<u8> {
        let (samples, _) = pcm.as_chunks::<2>();
        let expected = samples.len() as u64 * self.to / self.from + 2;
        let mut made = Vec::with_capacity(2 * expected as usize);
        for sample in samples {
            let sample = i16::from_le_bytes(*sample);
            // The first sample has none before it.
            let last = self.last.replace(sample).unwrap_or(sample);
            // Between the last sample (at 0) and this one (at `to`) lie the output samples, every `from`.
            while self.behind < self.to {
                let (last, sample) = (i64::from(last), i64::from(sample));
                let value = last + (sample - last) * self.behind as i64 / self.to as i64;
                made.extend_from_slice(&(value as i16).to_le_bytes());
                self.behind += self.from;
            }
            self.behind -= self.to;
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pcm(samples: &[i16]) -> Vec<u8> {
        samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
    }

    fn samples(pcm: &[u8]) -> Vec<i16> {
        pcm.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect()
    }

    #[test]
    fn a_straight_line_stays_one() {
        let up = Resampler::new(16_000, 24_000).take(&pcm(&[0, 300, 600, 900, 1200]));
        assert_eq!(samples(&up), [0, 0, 100, 300, 500, 700, 900, 1100]);
        let down = Resampler::new(48_000, 24_000).take(&pcm(&[0, 300, 600, 900, 1200, 1500]));
        assert_eq!(samples(&down), [0, 300, 900]);
    }

    #[test]
    fn the_same_rate_changes_nothing_but_the_moment() {
        let same = Resampler::new(24_000, 24_000).take(&pcm(&[5, -6, 7, i16::MIN, i16::MAX]));
        assert_eq!(samples(&same), [5, 5, -6, 7, i16::MIN]);
    }

    #[test]
    fn a_tone_is_still_the_tone() {
        let tone = |rate: u32| {
            let step = std::f64::consts::TAU * 440.0 / f64::from(rate);
            (0..rate)
                .map(|n| (f64::from(n) * step).sin() * 10_000.0)
                .map(|value| value as i16)
                .collect::<Vec<_>>()
        };
        let made = samples(&Resampler::new(16_000, 24_000).take(&pcm(&tone(16_000))));
        assert_eq!(made.len(), 24_000);
        // It comes one sample of the old rate later: one and a half of the new.
        let wanted = tone(24_000);
        let worst = made[2..].iter().zip(&wanted).zip(&wanted[1..]);
        let worst = worst.map(|((made, before), after)| {
            (i32::from(*made) - (i32::from(*before) + i32::from(*after)) / 2).abs()
        });
        assert!(worst.max() < Some(100));
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_pieces_are_cut(
            sound in prop::collection::vec(any::<i16>(), 0..200),
            cuts in prop::collection::vec(0_usize..200, 0..5),
            (from, to) in (8_000_u32..96_000, 8_000_u32..96_000),
        ) {
            let whole = Resampler::new(from, to).take(&pcm(&sound));
            let (mut in_pieces, mut resampler) = (Vec::new(), Resampler::new(from, to));
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut begin = 0;
            for cut in cuts.into_iter().chain([sound.len()]) {
                let end = cut.clamp(begin, sound.len());
                in_pieces.extend(resampler.take(&pcm(&sound[begin..end])));
                begin = end;
            }
            prop_assert_eq!(&whole, &in_pieces);
            let expected = sound.len() as u64 * u64::from(to) / u64::from(from);
            prop_assert!((samples(&whole).len() as u64).abs_diff(expected) <= 1);
        }
    }
}
