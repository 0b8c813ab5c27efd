//! WAV: the header that we write, and the one that servers send.

use quarterdeck_contracts::HEARD_RATE;

use super::pcm::PcmReader;
use crate::Fault;

/// How much may come before the samples.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// A length from here on is one that a server wrote before it knew.
const UNKNOWN_LENGTH: u32 = 0x7fff_0000;
const PCM: u16 = 1;
/// The format is in an extension.
const EXTENSIBLE: u16 = 0xfffe;

/// A file of what a user said.
pub(super) fn write(samples: &[i16]) -> Vec<u8> {
    let length = u32::try_from(2 * samples.len()).unwrap_or(u32::MAX - 36);
    let mut file = Vec::with_capacity(44 + 2 * samples.len());
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + length).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&HEARD_RATE.to_le_bytes());
    file.extend_from_slice(&(2 * HEARD_RATE).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Samples out of a WAV file that comes in pieces of any size.
#[derive(Debug, Default)]
pub struct WavReader {
    state: State,
}

#[derive(Debug)]
enum State {
    /// What has come before the samples begin.
    Header(Vec<u8>),
    /// How many bytes of samples are still to come, if that is known.
    Samples(PcmReader, Option<u64>),
}

impl Default for State {
    fn default() -> Self {
        Self::Header(Vec::new())
    }
}

impl WavReader {
    /// The samples that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<i16>, Fault> {
        match &mut self.state {
            State::Samples(reader, left) => Ok(take(reader, left, bytes)),
            State::Header(header) => {
                header.extend_from_slice(bytes);
                let Some(found) = read_header(header)? else {
                    return match header.len() > MAX_HEADER_BYTES {
                        true => Err(Fault::garbled("the WAV file has no samples where they should begin")),
                        false => Ok(Vec::new()),
                    };
                };
                let mut left = found.length;
                let mut reader = PcmReader::with_channels(found.rate, found.channels)?;
                let samples = take(&mut reader, &mut left, &header[found.begin..]);
                self.state = State::Samples(reader, left);
                Ok(samples)
            }
        }
    }

    /// The end of the file.
    pub fn finish(&self) -> Result<(), Fault> {
        match &self.state {
            State::Header(header) if header.is_empty() => Ok(()),
            State::Header(_) => Err(Fault::cut("the WAV file ends in its header")),
            State::Samples(_, Some(left)) if *left > 0 => {
                Err(Fault::cut(format!("the WAV file ends {left} bytes too early")))
            }
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
    /// Bytes of samples; `None` where the server did not know.
    length: Option<u64>,
}

/// The header, once all of it is there.
fn read_header(bytes: &[u8]) -> Result<Option<Header>, Fault> {
    let Some((opening, mut rest)) = bytes.split_first_chunk::<12>() else { return Ok(None) };
    if !opening.starts_with(b"RIFF") || !opening.ends_with(b"WAVE") {
        return Err(Fault::garbled("the speech is not a WAV file"));
    }
    let mut format = None;
    while let Some((chunk, body)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        match &chunk[..4] {
            b"data" => {
                let Some((rate, channels)) = format else {
                    return Err(Fault::garbled("the WAV file does not say what its samples are"));
                };
                let length = (1..UNKNOWN_LENGTH).contains(&length).then_some(u64::from(length));
                return Ok(Some(Header { rate, channels, begin: bytes.len() - body.len(), length }));
            }
            b"fmt " if body.len() >= length as usize => format = Some(read_format(&body[..length as usize])?),
            _ => {}
        }
        // Chunks begin at even places.
        let Some(next) = body.get(length as usize + length as usize % 2..) else { break };
        rest = next;
    }
    Ok(None)
}

/// Rate and channels.
fn read_format(body: &[u8]) -> Result<(u32, u16), Fault> {
    let short = |at: usize| body.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    let tag = short(0).map(|tag| if tag == EXTENSIBLE { short(24).unwrap_or(tag) } else { tag });
    let rate = short(4).zip(short(6)).map(|(low, high)| u32::from(high) << 16 | u32::from(low));
    match (tag, short(2), rate, short(14)) {
        (Some(PCM), Some(channels), Some(rate), Some(16)) => Ok((rate, channels)),
        _ => Err(Fault::garbled("the WAV file's samples are not 16-bit PCM")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarterdeck_contracts::SPOKEN_RATE;

    use super::*;

    /// A file of [`SPOKEN_RATE`], with a chunk before and after its samples.
    fn file(samples: &[i16], length: u32) -> Vec<u8> {
        let mut file = b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend_from_slice(&SPOKEN_RATE.to_le_bytes());
        file.extend_from_slice(&(2 * SPOKEN_RATE).to_le_bytes());
        file.extend_from_slice(b"\x02\0\x10\0data");
        file.extend_from_slice(&length.to_le_bytes());
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }

    #[test]
    fn a_file_of_ours_says_what_it_is() {
        let file = write(&[1, -1]);
        assert_eq!(file.len(), 48);
        let header = read_header(&file).unwrap().unwrap();
        assert_eq!((header.rate, header.channels, header.begin, header.length), (16_000, 1, 44, Some(4)));
    }

    #[test]
    fn a_length_that_was_not_known_ends_with_the_file() {
        for length in [0, u32::MAX, 0x7fff_ffff] {
            let mut reader = WavReader::default();
            assert_eq!(reader.feed(&file(&[1, 2, 3], length)).unwrap(), [1, 2, 3]);
            reader.finish().unwrap();
        }
        let mut reader = WavReader::default();
        let mut tagged = file(&[1, 2, 3], 6);
        tagged.extend_from_slice(b"LIST\x02\0\0\0ab");
        assert_eq!(reader.feed(&tagged).unwrap(), [1, 2, 3], "tags are no samples");
        reader.finish().unwrap();
    }

    #[test]
    fn what_is_no_speech_is_refused() {
        let float = file(&[], 0).into_iter().collect::<Vec<_>>();
        let at = float.windows(4).position(|four| four == b"fmt ").unwrap() + 8;
        let mut float = float;
        float[at] = 3;
        let no_format = b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd".to_vec();
        for bytes in [b"<html><body>".to_vec(), float, no_format] {
            assert!(WavReader::default().feed(&bytes).is_err(), "{bytes:?}");
        }
        let mut endless = WavReader::default();
        endless.feed(b"RIFF\0\0\0\0WAVEjunk\0\0\0\x7f").unwrap();
        assert!((0..20).any(|_| endless.feed(&[0; 8 << 10]).is_err()), "a header has an end");
        let mut cut = WavReader::default();
        cut.feed(&file(&[1, 2], 6)).unwrap();
        assert!(cut.finish().is_err(), "a sample is missing");
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_chunks_are_cut(
            samples in prop::collection::vec(any::<i16>(), 1..100),
            sizes in prop::collection::vec(1_usize..30, 1..20),
        ) {
            let file = file(&samples, 2 * samples.len() as u32);
            let (mut pieces, mut reader) = (Vec::new(), WavReader::default());
            let (mut rest, mut sizes) = (&file[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                pieces.extend(reader.feed(piece).unwrap());
                rest = more;
            }
            prop_assert_eq!(samples, pieces);
            prop_assert!(reader.finish().is_ok());
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = WavReader::default();
            let all = [b"RIFF\0\0\0\0WAVE".as_slice(), &bytes].concat();
            let _ = reader.feed(&all).and_then(|_| reader.finish());
        }
    }
}
