//! The last moments of what the person said, for a provider that has not heard them.

use std::collections::VecDeque;

use quarterdeck_contracts::Audio;

/// How much is kept: two seconds of samples, or one and a half in base64. Every call has this much, so it is not more.
const MOST: usize = 64_000;

/// Audio that no provider has understood yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Echo {
    bytes: VecDeque<u8>,
    /// The pieces that the bytes are, each with its length.
    pieces: VecDeque<(usize, Encoding)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Pcm,
    Base64,
}

impl Echo {
    /// Keeps a piece, and lets go of the oldest ones that are too many.
    pub(super) fn push(&mut self, audio: &Audio<'_>) {
        let (bytes, encoding) = match audio {
            Audio::Pcm(bytes) => (&**bytes, Encoding::Pcm),
            Audio::Base64(text) => (text.as_bytes(), Encoding::Base64),
        };
        if bytes.len() > MOST {
            return;
        }
        if self.bytes.capacity() < MOST {
            self.bytes.reserve_exact(MOST);
        }
        while self.bytes.len() + bytes.len() > MOST
            && let Some((length, _)) = self.pieces.pop_front()
        {
            self.bytes.drain(..length);
        }
        self.bytes.extend(bytes);
        self.pieces.push_back((bytes.len(), encoding));
    }

    /// What was said has been understood.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }

    /// Gives away every piece, the oldest first.
    pub(super) fn drain(&mut self, mut to: impl FnMut(Audio<'_>)) {
        for (length, encoding) in std::mem::take(&mut self.pieces) {
            let piece: Vec<u8> = self.bytes.drain(..length).collect();
            match encoding {
                Encoding::Pcm => to(Audio::Pcm(piece.into())),
                // It was a text when it was kept.
                Encoding::Base64 => to(Audio::Base64(String::from_utf8(piece).unwrap_or_default().into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moments_are_kept_in_order() {
        let mut echo = Echo::default();
        for number in 0..1_000_u32 {
            let piece = vec![number as u8; 640];
            echo.push(&Audio::Pcm(piece.into()));
        }
        echo.push(&Audio::Base64("QUJD".into()));
        assert!(echo.bytes.len() <= MOST && echo.bytes.capacity() == MOST);
        let mut given = Vec::new();
        echo.drain(|audio| {
            given.push(match audio {
                Audio::Pcm(bytes) => u32::from(bytes[0]),
                Audio::Base64(text) => text.len() as u32,
            })
        });
        assert_eq!(given.len(), MOST / 640, "a hundred pieces of 20 ms, of which the last is in base64");
        assert_eq!(given.last(), Some(&4));
        assert_eq!(given[given.len() - 2], u32::from(999_u32 as u8));
        assert!(echo.pieces.is_empty() && echo.bytes.is_empty());
    }

    #[test]
    fn what_was_understood_is_not_said_again() {
        let mut echo = Echo::default();
        echo.push(&Audio::Pcm(vec![1, 2].into()));
        echo.clear();
        echo.drain(|_| panic!("nothing is left"));
    }
}
