//! Reads what synthesisers write.

use super::sound::SAMPLE_RATE;

/// The samples of a WAV file (16-bit, mono) at 24 kHz; nothing if it is no such file. A length that was not known when
/// its head was written, as on a pipe, does not matter.
pub fn samples_from_wav(bytes: &[u8]) -> Option<Vec<i16>> {
    let mut rest = bytes.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WAVE")?;
    let mut rate = None;
    loop {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        match name {
            b"fmt " => {
                let [format, channels] = [short(after, 0)?, short(after, 2)?];
                let wide = u32::from_le_bytes(*after.get(4..)?.first_chunk()?);
                (format == 1 && channels == 1 && short(after, 14)? == 16).then_some(())?;
                rate = Some(usize::try_from(wide).ok()?);
            }
            b"data" => {
                let data = &after[..after.len().min(length)];
                let samples: Vec<_> =
                    data.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
                return resampled(&samples, rate?);
            }
            _ => {}
        }
        // Chunks begin at even places.
        rest = after.get(length.checked_add(length % 2)?..)?;
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Straight lines between samples: good enough to be understood.
fn resampled(samples: &[i16], rate: usize) -> Option<Vec<i16>> {
    if !(4_000..=192_000).contains(&rate) {
        return None;
    }
    let count = samples.len() * SAMPLE_RATE / rate;
    let at = |nth: usize| {
        let (whole, part) = (nth * rate / SAMPLE_RATE, nth * rate % SAMPLE_RATE);
        let here = i64::from(*samples.get(whole)?);
        let next = samples.get(whole + 1).map_or(here, |next| i64::from(*next));
        i16::try_from(here + (next - here) * part as i64 / SAMPLE_RATE as i64).ok()
    };
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wav(rate: u32, length: u32, samples: &[i16]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        bytes.extend(rate.to_le_bytes());
        bytes.extend((rate * 2).to_le_bytes());
        bytes.extend(*b"\x02\0\x10\0LIST\x03\0\0\0abc\0data");
        bytes.extend(length.to_le_bytes());
        bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        bytes
    }

    #[test]
    fn a_file_from_a_pipe_is_read_and_brought_to_our_rate() {
        let samples: Vec<i16> = (0..22_050).map(|nth| (nth % 1_000) as i16).collect();
        let read = samples_from_wav(&wav(22_050, 0x7fff_f000, &samples)).unwrap();
        assert_eq!(read.len(), 24_000);
        assert_eq!(&read[..4], [0, 0, 1, 2], "between two samples");
        assert_eq!(samples_from_wav(&wav(24_000, 6, &[5, 6, 7, 8])), Some(vec![5, 6, 7]));
    }

    #[test]
    fn anything_else_is_nothing_and_no_panic() {
        let whole = wav(22_050, 8, &[1, 2, 3, 4]);
        for cut in 0..56 {
            assert_eq!(samples_from_wav(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(samples_from_wav(&wav(0, 8, &[1, 2])), None);
        assert_eq!(samples_from_wav(b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff"), None);
    }
}
