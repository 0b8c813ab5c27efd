//! Reads the sound of a WAV file while it is being written.
//!
//! A program that writes to a pipe does not know the length yet, so the lengths in the header are not believed where they
//! concern the samples.

use quarterdeck_contracts::SPOKEN_RATE;

use super::resample::Resampler;

/// A header has a few hundred bytes, even with remarks in it.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Turns the bytes of a WAV file, in any pieces, into samples at [`SPOKEN_RATE`].
#[derive(Default)]
pub struct WavReader {
    /// Bytes that are not understood yet: the header, or half a frame.
    pending: Vec<u8>,
    sound: Option<Sound>,
}

struct Sound {
    channels: usize,
    resampler: Resampler,
    /// How many bytes of samples are still to come, if the header knew.
    left: Option<usize>,
}

struct Format {
    channels: u16,
    rate: u32,
}

impl WavReader {
    /// The samples in the next bytes, or why this is no sound that can be played.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<i16>, &'static str> {
        self.pending.extend_from_slice(bytes);
        if self.sound.is_none() {
            match parse_header(&self.pending)? {
                Some((sound, header)) => {
                    self.pending.drain(..header);
                    self.sound = Some(sound);
                }
                None if self.pending.len() > MAX_HEADER_BYTES => return Err("its WAV header is too long"),
                None => return Ok(Vec::new()),
            }
        }
        Ok(self.sound.as_mut().map(|sound| sound.take(&mut self.pending)).unwrap_or_default())
    }

    /// The last samples. A file that ended within its header is an error.
    pub fn finish(self) -> Result<Vec<i16>, &'static str> {
        let sound = self.sound.ok_or("it wrote no WAV file")?;
        Ok(sound.resampler.finish())
    }
}

impl Sound {
    /// Takes the whole frames out of `bytes`.
    fn take(&mut self, bytes: &mut Vec<u8>) -> Vec<i16> {
        let frame = 2 * self.channels;
        let wanted = self.left.map_or(bytes.len(), |left| left.min(bytes.len()));
        let whole = wanted / frame * frame;
        let mono: Vec<i16> = bytes[..whole].chunks_exact(frame).map(mix).collect();
        if let Some(left) = &mut self.left {
            *left -= whole;
        }
        // What follows the samples is no sound.
        let is_over = self.left.is_some_and(|left| left < frame);
        bytes.drain(..if is_over { bytes.len() } else { whole });
        self.resampler.take(&mono)
    }
}

/// The mean of the channels.
fn mix(frame: &[u8]) -> i16 {
    let (samples, _) = frame.as_chunks::<2>();
    let sum: i32 = samples.iter().map(|sample| i32::from(i16::from_le_bytes(*sample))).sum();
    (sum / samples.len().max(1) as i32) as i16
}

/// The sound and the length of the header, or nothing while it is incomplete.
fn parse_header(bytes: &[u8]) -> Result<Option<(Sound, usize)>, &'static str> {
    let Some(start) = bytes.get(..12) else { return Ok(None) };
    if &start[..4] != b"RIFF" || &start[8..] != b"WAVE" {
        return Err("its output is not a WAV file");
    }
    let mut format = None;
    let mut place = 12;
    while let Some(head) = bytes.get(place..place + 8) {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        place += 8;
        if &head[..4] == b"data" {
            let Format { channels, rate } = format.ok_or("its WAV file has no format")?;
            // Longer than anything that is spoken: the length was not known.
            let left = Some(length).filter(|length| (1..0x7fff_0000).contains(length));
            let resampler = Resampler::new(rate, SPOKEN_RATE);
            return Ok(Some((Sound { channels: channels.into(), resampler, left }, place)));
        }
        let Some(body) = place.checked_add(length).and_then(|end| bytes.get(place..end)) else {
            return if length > MAX_HEADER_BYTES { Err("its WAV header is too long") } else { Ok(None) };
        };
        if &head[..4] == b"fmt " {
            format = Some(parse_format(body)?);
        }
        // Chunks begin at even places.
        place += length + length % 2;
    }
    Ok(None)
}

fn parse_format(body: &[u8]) -> Result<Format, &'static str> {
    let body = body.get(..16).ok_or("its WAV format is too short")?;
    let number = |at: usize| u16::from_le_bytes([body[at], body[at + 1]]);
    let rate = u32::from_le_bytes([body[4], body[5], body[6], body[7]]);
    let (encoding, channels, bits) = (number(0), number(2), number(14));
    // 1 is plain samples; 0xfffe is the same with a longer header.
    if !matches!(encoding, 1 | 0xfffe) || bits != 16 || !(1..=2).contains(&channels) {
        return Err("its WAV file does not hold 16-bit samples of one or two channels");
    }
    if !(8_000..=48_000).contains(&rate) {
        return Err("the rate of its WAV file is not from 8 to 48 kHz");
    }
    Ok(Format { channels, rate })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wav(channels: u16, rate: u32, length: u32, samples: &[i16]) -> Vec<u8> {
        let mut file = b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0\x01\0".to_vec();
        file.extend(channels.to_le_bytes());
        file.extend(rate.to_le_bytes());
        file.extend([0; 6]);
        file.extend(16_u16.to_le_bytes());
        file.extend(b"data");
        file.extend(length.to_le_bytes());
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }

    fn read(bytes: &[u8], piece: usize) -> Result<Vec<i16>, &'static str> {
        let mut reader = WavReader::default();
        let mut samples = Vec::new();
        for piece in bytes.chunks(piece) {
            samples.extend(reader.take(piece)?);
        }
        samples.extend(reader.finish()?);
        Ok(samples)
    }

    #[test]
    fn samples_are_read_from_any_pieces() {
        let file = wav(1, 24_000, 6, &[1, -2, 300]);
        for piece in 1..=file.len() {
            assert_eq!(read(&file, piece), Ok(vec![1, -2, 300]), "{piece}");
        }
    }

    #[test]
    fn a_pipe_does_not_know_its_length() {
        for length in [0, 0x7fff_f000, u32::MAX] {
            assert_eq!(read(&wav(1, 24_000, length, &[1, -2, 300]), 5), Ok(vec![1, -2, 300]));
        }
    }

    #[test]
    fn what_follows_the_samples_is_no_sound() {
        assert_eq!(read(&wav(1, 24_000, 4, &[1, 2, 9, 9]), 7), Ok(vec![1, 2]));
    }

    #[test]
    fn two_channels_become_one() {
        assert_eq!(read(&wav(2, 24_000, 8, &[10, 20, i16::MAX, i16::MAX]), 9), Ok(vec![15, i16::MAX]));
    }

    #[test]
    fn another_rate_becomes_ours() {
        assert_eq!(read(&wav(1, 12_000, 0, &[7; 600]), 64).map(|samples| samples.len()), Ok(1_200));
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(read(b"ID3 and so on", 4), Err("its output is not a WAV file"));
        assert_eq!(read(b"", 4), Err("it wrote no WAV file"));
        assert_eq!(read(&wav(1, 24_000, 6, &[])[..30], 4), Err("it wrote no WAV file"));
        assert_eq!(
            read(&wav(1, 96_000, 0, &[1]), 64),
            Err("the rate of its WAV file is not from 8 to 48 kHz")
        );
        assert!(read(&wav(3, 24_000, 0, &[1]), 64).is_err());
        let endless = [&b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff"[..], &[0; 100]].concat();
        assert_eq!(read(&endless, 64), Err("its WAV header is too long"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_sound_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50) {
            let _ = read(&bytes, piece);
            let _ = read(&[&wav(2, 22_050, 40, &[])[..], &bytes].concat(), piece);
        }
    }
}
