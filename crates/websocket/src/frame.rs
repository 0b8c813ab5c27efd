//! Frame headers, and masks.

/// Header and mask of a frame with a 64-bit length.
pub(crate) const MAX_HEADER_BYTES: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of the message before it.
    Continuation,
    /// UTF-8 text.
    Text,
    /// Bytes.
    Binary,
    /// A close frame.
    Close,
    /// To be answered with a pong.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    pub(crate) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The code of a close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The conversation is over.
    pub const NORMAL: Self = Self(1000);
    /// The server stops, or the page was left.
    pub const AWAY: Self = Self(1001);
    /// A protocol violation.
    pub const PROTOCOL: Self = Self(1002);
    /// Text that is not UTF-8, or a payload that makes no sense.
    pub const INVALID: Self = Self(1007);
    /// Policy violation.
    pub const POLICY: Self = Self(1008);
    /// A message over the size limit.
    pub const TOO_BIG: Self = Self(1009);
    /// The server failed.
    pub const INTERNAL: Self = Self(1011);
    /// Try again later.
    pub const TRY_AGAIN: Self = Self(1013);

    /// Whether a peer may send it: some codes are for local use only.
    pub(crate) fn is_sendable(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) is_final: bool,
    pub(crate) opcode: Opcode,
    pub(crate) mask: Option<[u8; 4]>,
    /// Bytes of the header itself.
    pub(crate) length: usize,
    /// Bytes of the payload.
    pub(crate) payload: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    ReservedBits,
    UnknownOpcode,
    LongControl,
}

impl FrameHeader {
    /// Reads the header at the beginning of `bytes`; `None` until all of it has arrived.
    pub(crate) fn read(bytes: &[u8]) -> Option<Result<Self, HeaderError>> {
        let (&first, &second) = (bytes.first()?, bytes.get(1)?);
        if first & 0x70 != 0 {
            return Some(Err(HeaderError::ReservedBits));
        }
        let Some(opcode) = Opcode::from_bits(first & 0x0f) else {
            return Some(Err(HeaderError::UnknownOpcode));
        };
        let is_final = first & 0x80 != 0;
        let short = second & 0x7f;
        if opcode.is_control() && (short > 125 || !is_final) {
            return Some(Err(HeaderError::LongControl));
        }
        let (payload, mut length) = match short {
            126 => (u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?)), 4),
            127 => (u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?), 10),
            short => (u64::from(short), 2),
        };
        let mask = match second & 0x80 {
            0 => None,
            _ => {
                let mask = *bytes.get(length..)?.first_chunk()?;
                length += 4;
                Some(mask)
            }
        };
        Some(Ok(Self { is_final, opcode, mask, length, payload }))
    }

    /// Appends the header of an unfragmented message.
    pub(crate) fn write(out: &mut Vec<u8>, opcode: Opcode, payload: usize, mask: Option<[u8; 4]>) {
        out.push(0x80 | opcode.bits());
        let masked = if mask.is_some() { 0x80 } else { 0 };
        match payload {
            0..=125 => out.push(masked | payload as u8),
            126..=0xffff => {
                out.push(masked | 126);
                out.extend_from_slice(&(payload as u16).to_be_bytes());
            }
            _ => {
                out.push(masked | 127);
                out.extend_from_slice(&(payload as u64).to_be_bytes());
            }
        }
        if let Some(mask) = mask {
            out.extend_from_slice(&mask);
        }
    }
}

/// Masks bytes, or unmasks them.
pub(crate) fn apply_mask(bytes: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_head_that_was_written_is_read(payload in 0_usize..200_000, mask in any::<Option<[u8; 4]>>()) {
            let mut bytes = Vec::new();
            FrameHeader::write(&mut bytes, Opcode::Binary, payload, mask);
            for cut in 0..bytes.len() {
                prop_assert_eq!(FrameHeader::read(&bytes[..cut]), None);
            }
            let head = FrameHeader::read(&bytes).unwrap().unwrap();
            prop_assert_eq!(head, FrameHeader {
                is_final: true, opcode: Opcode::Binary, mask, length: bytes.len(), payload: payload as u64,
            });
        }

        #[test]
        fn a_mask_is_taken_off_by_itself(bytes in any::<Vec<u8>>(), mask in any::<[u8; 4]>()) {
            let mut masked = bytes.clone();
            apply_mask(&mut masked, mask);
            for (place, byte) in masked.iter().enumerate() {
                prop_assert_eq!(*byte, bytes[place] ^ mask[place % 4]);
            }
            apply_mask(&mut masked, mask);
            prop_assert_eq!(masked, bytes);
        }
    }
}
