//! Samples out of bytes that come in pieces of any size.

use std::ops::RangeInclusive;

use crate::{AudioError, Resampler};

/// The slowest and the fastest sound that can be converted.
const RATES: RangeInclusive<u32> = 8_000..=48_000;
const CHANNELS: RangeInclusive<u16> = 1..=2;

/// 16-bit little-endian samples of one or two channels, as mono at another rate. A piece may end within a sample.
#[derive(Debug)]
pub struct PcmReader {
    /// The beginning of a frame whose end has not come.
    rest: Vec<u8>,
    channels: usize,
    resampler: Resampler,
}

impl PcmReader {
    /// Reads sound of `rate` and `channels` as mono of the rate `to`.
    pub fn new(rate: u32, channels: u16, to: u32) -> Result<Self, AudioError> {
        if !RATES.contains(&rate) || !CHANNELS.contains(&channels) {
            return Err(AudioError::Unsupported { rate, channels });
        }
        let resampler = Resampler::new(rate, to);
        Ok(Self { rest: Vec::new(), channels: usize::from(channels), resampler })
    }

    /// The samples that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<i16> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - self.rest.len() % (2 * self.channels);
        let (samples, _) = self.rest[..whole].as_chunks::<2>();
        let mono: Vec<i16> = samples.chunks_exact(self.channels).map(mix).collect();
        self.rest.drain(..whole);
        self.resampler.take(&mono)
    }

    /// The last samples. Half a sample is a sign that more was meant to come.
    pub fn finish(&mut self) -> Result<Vec<i16>, AudioError> {
        if self.rest.is_empty() { Ok(self.resampler.finish()) } else { Err(AudioError::Truncated) }
    }
}

/// One sample of all channels.
fn mix(frame: &[[u8; 2]]) -> i16 {
    let sum: i32 = frame.iter().map(|sample| i32::from(i16::from_le_bytes(*sample))).sum();
    // A mean of samples is a sample.
    (sum / frame.len().max(1) as i32) as i16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_channels_become_their_mean() {
        let mut reader = PcmReader::new(24_000, 2, 24_000).unwrap();
        assert_eq!(reader.feed(&[0, 0, 10, 0, 255, 127, 255, 127, 9]), [5, i16::MAX]);
        assert_eq!(reader.finish(), Err(AudioError::Truncated), "a byte is left");
    }

    #[test]
    fn odd_rates_are_refused() {
        for (rate, channels) in [(0, 1), (7_999, 1), (48_001, 1), (24_000, 0), (24_000, 3)] {
            assert!(PcmReader::new(rate, channels, 24_000).is_err(), "{rate} {channels}");
        }
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_chunks_are_cut(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            sizes in prop::collection::vec(1_usize..9, 1..20),
            rate in prop::sample::select(vec![8_000_u32, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000]),
            channels in 1_u16..=2,
        ) {
            let mut reader = PcmReader::new(rate, channels, 24_000).unwrap();
            let whole = reader.feed(&bytes);
            let (mut pieces, mut reader) = (Vec::new(), PcmReader::new(rate, channels, 24_000).unwrap());
            let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                pieces.extend(reader.feed(piece));
                rest = more;
            }
            prop_assert_eq!(whole, pieces);
        }
    }
}
