//! Recent input audio, for a provider connection that has not received it.

use std::collections::VecDeque;

use quarterdeck_contracts::Audio;

/// Two seconds of samples, or one and a half in base64. Every call has this much, so it is not more.
const MAX_BUFFERED_BYTES: usize = 64_000;

/// Audio that no provider has transcribed yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct InputAudioBuffer {
    bytes: VecDeque<u8>,
    /// The frames that the bytes are, each with its length.
    frames: VecDeque<(usize, Encoding)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Pcm,
    Base64,
}

impl InputAudioBuffer {
    /// Keeps a frame, and drops the oldest ones that are too many.
    pub(super) fn push(&mut self, audio: &Audio<'_>) {
        let (bytes, encoding) = match audio {
            Audio::Pcm(bytes) => (&**bytes, Encoding::Pcm),
            Audio::Base64(text) => (text.as_bytes(), Encoding::Base64),
        };
        if bytes.len() > MAX_BUFFERED_BYTES {
            return;
        }
        if self.bytes.capacity() < MAX_BUFFERED_BYTES {
            self.bytes.reserve_exact(MAX_BUFFERED_BYTES);
        }
        while self.bytes.len() + bytes.len() > MAX_BUFFERED_BYTES
            && let Some((length, _)) = self.frames.pop_front()
        {
            self.bytes.drain(..length);
        }
        self.bytes.extend(bytes);
        self.frames.push_back((bytes.len(), encoding));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The audio has been transcribed.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }

    /// Hands over every frame, the oldest first.
    pub(super) fn drain(&mut self, mut to: impl FnMut(Audio<'_>)) {
        for (length, encoding) in std::mem::take(&mut self.frames) {
            let frame: Vec<u8> = self.bytes.drain(..length).collect();
            match encoding {
                Encoding::Pcm => to(Audio::Pcm(frame.into())),
                // It was text when it was pushed.
                Encoding::Base64 => to(Audio::Base64(String::from_utf8(frame).unwrap_or_default().into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_input_audio_is_kept_in_order() {
        let mut buffer = InputAudioBuffer::default();
        for number in 0..1_000_u32 {
            let frame = vec![number as u8; 640];
            buffer.push(&Audio::Pcm(frame.into()));
        }
        buffer.push(&Audio::Base64("QUJD".into()));
        assert!(buffer.bytes.len() <= MAX_BUFFERED_BYTES && buffer.bytes.capacity() == MAX_BUFFERED_BYTES);
        let mut replayed = Vec::new();
        buffer.drain(|audio| {
            replayed.push(match audio {
                Audio::Pcm(bytes) => u32::from(bytes[0]),
                Audio::Base64(text) => text.len() as u32,
            })
        });
        assert_eq!(
            replayed.len(),
            MAX_BUFFERED_BYTES / 640,
            "a hundred frames of 20 ms, of which the last is in base64"
        );
        assert_eq!(replayed.last(), Some(&4));
        assert_eq!(replayed[replayed.len() - 2], u32::from(999_u32 as u8));
        assert!(buffer.frames.is_empty() && buffer.bytes.is_empty());
    }

    #[test]
    fn transcribed_audio_is_not_replayed() {
        let mut buffer = InputAudioBuffer::default();
        buffer.push(&Audio::Pcm(vec![1, 2].into()));
        buffer.clear();
        buffer.drain(|_| panic!("nothing is left"));
    }
}
