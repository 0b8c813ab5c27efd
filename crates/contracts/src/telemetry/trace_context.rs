//! The place of a span in its trace, and its header: `traceparent` of the W3C's Trace Context.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a `traceparent` of version 00.
const HEADER_BYTES: usize = 55;
/// The bit of the flags that says that the process that began the trace keeps it.
const SAMPLED: u8 = 1;

/// Names a span: the trace that it belongs to, its own id, and whether the trace is kept as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Never all zeroes.
    pub trace_id: [u8; 16],
    /// Never all zeroes.
    pub span_id: [u8; 8],
    /// Whether the trace is kept. An error may be kept in a trace that is not.
    pub is_sampled: bool,
    /// Whether the span is another process's.
    pub is_remote: bool,
}

impl TraceContext {
    /// Reads a `traceparent` of another process. Of versions to come only what this one has is read, as the standard says.
    pub fn parse(header: &str) -> Option<Self> {
        let bytes = header.as_bytes();
        let is_longer = bytes.len() > HEADER_BYTES;
        if bytes.len() < HEADER_BYTES || (is_longer && (bytes[HEADER_BYTES] != b'-' || &bytes[..2] == b"00"))
        {
            return None;
        }
        let has_dashes = [2, 35, 52].iter().all(|place| bytes[*place] == b'-');
        let [version] = read_hex(&bytes[..2])?;
        let trace_id = read_hex(&bytes[3..35])?;
        let span_id = read_hex(&bytes[36..52])?;
        let [flags] = read_hex(&bytes[53..55])?;
        let is_valid = has_dashes && version != 0xff && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self { trace_id, span_id, is_sampled: flags & SAMPLED != 0, is_remote: true })
    }

    /// As the header `traceparent` has it.
    pub fn to_traceparent(self) -> String {
        let flags = u8::from(self.is_sampled);
        format!("00-{}-{}-{flags:02x}", Hex(&self.trace_id), Hex(&self.span_id))
    }
}

/// Digits are lower case: the standard refuses others, and two ways to write one id would be two ids.
fn read_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut read = [0; N];
    for (byte, pair) in read.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(read)
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_traceparent())
    }
}

/// Stored as its header, because a row may be read by another process.
impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_traceparent())
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let header = String::deserialize(deserializer)?;
        Self::parse(&header).ok_or_else(|| serde::de::Error::custom("not a traceparent"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_is_read_and_written_alike() {
        let context = TraceContext::parse(HEADER).unwrap();
        assert!(context.is_sampled && context.is_remote);
        assert_eq!(context.to_traceparent(), HEADER);
        let off = TraceContext::parse(&HEADER.replace("-01", "-00")).unwrap();
        assert!(!off.is_sampled);
    }

    #[test]
    fn a_header_of_a_later_version_is_read_as_far_as_it_is_known() {
        assert!(TraceContext::parse(&format!("{}-more", HEADER.replacen("00", "01", 1))).is_some());
        assert!(TraceContext::parse(&format!("{HEADER}-more")).is_none(), "this version ends here");
        assert!(TraceContext::parse(&HEADER.replacen("00", "ff", 1)).is_none(), "never a version");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for wrong in [
            "",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b716920333-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_means_its_own_ids(text in "(00|01)?-?[0-9a-f-]{0,60}|.{0,80}") {
            if let Some(context) = TraceContext::parse(&text) {
                prop_assert_eq!(&context.to_traceparent()[2..52], &text[2..52]);
            }
        }
    }
}
