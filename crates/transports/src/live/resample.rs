//! From one rate to another.

/// Makes samples of another rate, by drawing straight lines between those that came. That is enough for speech that
/// goes up, or a little down: what a filter would add is not heard over a voice line.
///
/// Pieces may be cut anywhere, between samples: a piece begins where the one before it ended.
#[derive(Debug, Clone)]
pub struct Resampler {
    from: u64,
    to: u64,
    /// The last sample that came.
    last: Option<i16>,
    /// How far behind the last sample that came the next one to make lies, in parts of `to` per sample.
    behind: u64,
}

impl Resampler {
    /// A resampler between two rates, neither of which is zero.
    pub fn new(from: u32, to: u32) -> Self {
        Self { from: u64::from(from.max(1)), to: u64::from(to.max(1)), last: None, behind: 0 }
    }

    /// The rate of what comes.
    pub fn from(&self) -> u32 {
        self.from as u32
    }

    /// Takes 16-bit little-endian samples, and gives those of the other rate.
    pub fn take(&mut self, pcm: &[u8]) -> Vec<u8> {
        let (samples, _) = pcm.as_chunks::<2>();
        let expected = samples.len() as u64 * self.to / self.from + 2;
        let mut made = Vec::with_capacity(2 * expected as usize);
        for sample in samples {
            let sample = i16::from_le_bytes(*sample);
            // The very first sample stands for itself.
            let last = self.last.replace(sample).unwrap_or(sample);
            // Between the last sample (at 0) and this one (at `to`) lies what is to be made, every `from`.
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
