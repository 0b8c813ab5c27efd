//! The checksum of a row, in the column `sum`.
//!
//! The engine checks that pages belong together, not what is in them: a bit that flips inside a value would be served
//! as if it had been written. FNV-1a (64 bits) notices every change of a single byte, and of several all but one in
//! 2^64. It is no signature: a process that can write the file can write the checksum.

pub(super) fn checksum(table: &str, key: &str, value: &str, version: i64, expires_ms: Option<i64>) -> i64 {
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    for text in [table, key, value] {
        sum.add(&(text.len() as u64).to_le_bytes());
        sum.add(text.as_bytes());
    }
    sum.add(&version.to_le_bytes());
    sum.add(&[u8::from(expires_ms.is_some())]);
    sum.add(&expires_ms.unwrap_or(0).to_le_bytes());
    i64::from_le_bytes(sum.0.to_le_bytes())
}

struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_row_counts_and_where_it_ends_does() {
        let of = |table, key, value, version, expires| checksum(table, key, value, version, expires);
        let row = of("calls", "a/b", "{}", 7, Some(9));
        assert_eq!(row, of("calls", "a/b", "{}", 7, Some(9)));
        for other in [
            of("call", "sa/b", "{}", 7, Some(9)),
            of("calls", "a/", "b{}", 7, Some(9)),
            of("calls", "a/b", "[]", 7, Some(9)),
            of("calls", "a/b", "{}", 8, Some(9)),
            of("calls", "a/b", "{}", 7, Some(0)),
            of("calls", "a/b", "{}", 7, None),
        ] {
            assert_ne!(row, other);
        }
        assert_ne!(of("calls", "a/b", "{}", 7, Some(0)), of("calls", "a/b", "{}", 7, None));
    }
}
