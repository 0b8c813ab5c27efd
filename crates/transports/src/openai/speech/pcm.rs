//! Samples out of bytes that come in pieces of any size.

use quarterdeck_contracts::SPOKEN_RATE;

use crate::Fault;
use crate::live::Resampler;

/// The slowest and the fastest sound that can be converted.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// 16-bit little-endian samples of one or two channels, as mono at [`SPOKEN_RATE`]. A piece may end within a sample.
#[derive(Debug)]
pub struct PcmReader {
    /// The beginning of a frame whose end has not come.
    rest: Vec<u8>,
    channels: usize,
    resampler: Option<Resampler>,
}

impl PcmReader {
    /// Mono of this rate.
    pub fn new(rate: u32) -> Result<Self, Fault> {
        Self::with_channels(rate, 1)
    }

    pub(super) fn with_channels(rate: u32, channels: u16) -> Result<Self, Fault> {
        if !RATES.contains(&rate) || !(1..=2).contains(&channels) {
            let detail = format!("sound of {rate} Hz and {channels} channels cannot be converted");
            return Err(Fault::garbled(detail));
        }
        let resampler = (rate != SPOKEN_RATE).then(|| Resampler::new(rate, SPOKEN_RATE));
        Ok(Self { rest: Vec::new(), channels: usize::from(channels), resampler })
    }

    /// The samples that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<i16> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - self.rest.len() % (2 * self.channels);
        let (samples, _) = self.rest[..whole].as_chunks::<2>();
        let mono: Vec<i16> = samples.chunks_exact(self.channels).map(mix).collect();
        self.rest.drain(..whole);
        match &mut self.resampler {
            None => mono,
            Some(resampler) => {
                let bytes: Vec<u8> = mono.iter().flat_map(|sample| sample.to_le_bytes()).collect();
                resampler
                    .take(&bytes)
                    .as_chunks()
                    .0
                    .iter()
                    .map(|sample| i16::from_le_bytes(*sample))
                    .collect()
            }
        }
    }

    /// The end: half a sample is a sign that more was meant to come.
    pub fn finish(&self) -> Result<(), Fault> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Fault::cut("the speech ends within a sample")),
        }
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
        let mut reader = PcmReader::with_channels(SPOKEN_RATE, 2).unwrap();
        assert_eq!(reader.feed(&[0, 0, 10, 0, 255, 127, 255, 127, 9]), [5, i16::MAX]);
        assert!(reader.finish().is_err(), "a byte is left");
    }

    #[test]
    fn odd_rates_are_refused() {
        for (rate, channels) in [(0, 1), (7_999, 1), (48_001, 1), (24_000, 0), (24_000, 3)] {
            assert!(PcmReader::with_channels(rate, channels).is_err(), "{rate} {channels}");
        }
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_chunks_are_cut(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            sizes in prop::collection::vec(1_usize..9, 1..20),
            rate in 8_000_u32..=48_000,
            channels in 1_u16..=2,
        ) {
            let mut reader = PcmReader::with_channels(rate, channels).unwrap();
            let whole = reader.feed(&bytes);
            let (mut pieces, mut reader) = (Vec::new(), PcmReader::with_channels(rate, channels).unwrap());
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
