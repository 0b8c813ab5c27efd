//! The share of traces that are kept.

/// Keeps a trace or not by its id alone, so that every process that sees it decides alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio(u64);

/// The ids' last seven bytes are random by the standard.
const BITS: u32 = 56;

impl Ratio {
    pub(crate) fn new(share: f64) -> Self {
        Self((share.clamp(0.0, 1.0) * (1_u64 << BITS) as f64) as u64)
    }

    pub(crate) fn keeps(self, trace_id: [u8; 16]) -> bool {
        let mut last = [0; 8];
        last[1..].copy_from_slice(&trace_id[9..]);
        u64::from_be_bytes(last) < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_none_and_about_half_of_the_traces_are_kept() {
        let kept = |share| {
            let ratio = Ratio::new(share);
            (0..1_000_u64)
                .filter(|number| {
                    let mut id = [0xff; 16];
                    // Spreads over all values.
                    id[8..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
                    ratio.keeps(id)
                })
                .count()
        };
        assert_eq!((kept(0.0), kept(1.0)), (0, 1_000));
        assert!((450..550).contains(&kept(0.5)), "{}", kept(0.5));
    }
}
