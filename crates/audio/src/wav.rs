//! WAV: the file that we write, and those that engines and servers send while they speak.
//!
//! A program that writes to a pipe does not know the length yet, so a length that no speech has is not believed.

use crate::{AudioError, PcmReader};

/// How much may come before the samples: a few hundred bytes, even with remarks.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// A length from here on was written before it was known.
const UNKNOWN_LENGTH: u32 = 0x7fff_0000;
const PCM: u16 = 1;
/// The format is in an extension.
const EXTENSIBLE: u16 = 0xfffe;

/// A file of mono samples.
pub fn wav_file(samples: &[i16], rate: u32) -> Vec<u8> {
    let length = u32::try_from(2 * samples.len()).unwrap_or(u32::MAX - 36);
    let mut file = Vec::with_capacity(44 + 2 * samples.len());
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + length).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&rate.saturating_mul(2).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Mono samples of one rate out of a WAV file that comes in pieces of any size.
#[derive(Debug)]
pub struct WavReader {
    to: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// What has come before the samples begin.
    Header(Vec<u8>),
    /// How many bytes of samples are still to come, if that is known.
    Samples(PcmReader, Option<u64>),
}

impl WavReader {
    /// Reads a file of any rate as samples of the rate `to`.
    pub fn new(to: u32) -> Self {
        Self { to, state: State::Header(Vec::new()) }
    }

    /// The samples that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<i16>, AudioError> {
        match &mut self.state {
            State::Samples(reader, left) => Ok(take(reader, left, bytes)),
            State::Header(header) => {
                header.extend_from_slice(bytes);
                let Some(found) = read_header(header)? else {
                    let is_too_long = header.len() > MAX_HEADER_BYTES;
                    return if is_too_long { Err(AudioError::HeaderTooLong) } else { Ok(Vec::new()) };
                };
                let mut left = found.length;
                let mut reader = PcmReader::new(found.rate, found.channels, self.to)?;
                let samples = take(&mut reader, &mut left, &header[found.begin..]);
                self.state = State::Samples(reader, left);
                Ok(samples)
            }
        }
    }

    /// The last samples, at the end of the file.
    pub fn finish(&mut self) -> Result<Vec<i16>, AudioError> {
        match &mut self.state {
            State::Header(_) => Err(AudioError::Truncated),
            State::Samples(_, Some(left)) if *left > 0 => Err(AudioError::Truncated),
            State::Samples(reader, _) => reader.finish(),
        }
    }
}

/// What follows the samples, such as tags, is passed over.
fn take(reader: &mut PcmReader, left: &mut Option<u64>, bytes: &[u8]) -> Vec<i16> {
    let Some(left) = left else { return reader.feed(bytes) };
    let bytes = &bytes[..usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len())];
    *left -= bytes.len() as u64;
    reader.feed(bytes)
}

struct Header {
    rate: u32,
    channels: u16,
    /// Where the samples begin.
    begin: usize,
    /// Bytes of samples; `None` where they were not known.
    length: Option<u64>,
}

/// The header, once all of it is there.
fn read_header(bytes: &[u8]) -> Result<Option<Header>, AudioError> {
    let Some((opening, mut rest)) = bytes.split_first_chunk::<12>() else {
        // Something else need not be waited for.
        let is_wav = b"RIFF".starts_with(&bytes[..bytes.len().min(4)]);
        return if is_wav { Ok(None) } else { Err(AudioError::NotWav) };
    };
    if !opening.starts_with(b"RIFF") || !opening.ends_with(b"WAVE") {
        return Err(AudioError::NotWav);
    }
    let mut format = None;
    while let Some((chunk, body)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        let end = length as usize;
        match &chunk[..4] {
            b"data" => {
                let (rate, channels) = format.ok_or(AudioError::NoFormat)?;
                let length = (1..UNKNOWN_LENGTH).contains(&length).then_some(u64::from(length));
                return Ok(Some(Header { rate, channels, begin: bytes.len() - body.len(), length }));
            }
            _ if end > MAX_HEADER_BYTES => return Err(AudioError::HeaderTooLong),
            b"fmt " if body.len() >= end => format = Some(read_format(&body[..end])?),
            _ => {}
        }
        // Chunks begin at even places.
        let Some(next) = body.get(end + end % 2..) else { break };
        rest = next;
    }
    Ok(None)
}

/// Rate and channels.
fn read_format(body: &[u8]) -> Result<(u32, u16), AudioError> {
    let short = |at: usize| body.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    let tag = short(0).map(|tag| if tag == EXTENSIBLE { short(24).unwrap_or(tag) } else { tag });
    let rate = short(4).zip(short(6)).map(|(low, high)| u32::from(high) << 16 | u32::from(low));
    match (tag, short(2), rate, short(14)) {
        (Some(PCM), Some(channels), Some(rate), Some(16)) => Ok((rate, channels)),
        _ => Err(AudioError::NotPcm16),
    }
}

#[cfg(test)]
mod tests;
