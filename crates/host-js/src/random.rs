//! Random numbers for handlers.

/// `Math.random` of one engine: fast, seeded from the operating system's randomness, good for jitter and sampling.
/// Nothing that must not be guessed should come from it; `crypto` is for that.
pub(crate) struct Random([u64; 2]);

impl Random {
    pub(crate) fn new() -> Self {
        let mut seed = [0; 16];
        fill(&mut seed);
        let (low, high) = seed.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        // Both words zero would stay zero for ever.
        Self([word(low) | 1, word(high)])
    }

    /// The next number of xoroshiro128+, in [0, 1).
    pub(crate) fn next(&mut self) -> f64 {
        let [a, b] = self.0;
        let sum = a.wrapping_add(b);
        let mixed = a ^ b;
        self.0 = [a.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        (sum >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A random UUID (version 4).
pub(crate) fn uuid() -> String {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

pub(crate) fn byte() -> u8 {
    let mut byte = [0];
    fill(&mut byte);
    byte[0]
}

fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system has randomness");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_in_the_unit_interval_and_engines_differ() {
        let (mut one, mut other) = (Random::new(), Random::new());
        let numbers: Vec<f64> = (0..1_000).map(|_| one.next()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!((0.4..0.6).contains(&(numbers.iter().sum::<f64>() / 1_000.0)));
        assert_ne!(numbers[0], other.next());
    }
}
