use proptest::prelude::*;

use super::*;

/// A file with a chunk before its format, whose header says this length.
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

fn read(bytes: &[u8], piece: usize) -> Result<Vec<i16>, AudioError> {
    let mut reader = WavReader::new(24_000);
    let mut samples = Vec::new();
    for piece in bytes.chunks(piece) {
        samples.extend(reader.feed(piece)?);
    }
    samples.extend(reader.finish()?);
    Ok(samples)
}

#[test]
fn a_file_of_ours_is_read_from_any_pieces() {
    let file = wav_file(&[1, -2, 300], 24_000);
    assert_eq!(file.len(), 50);
    for piece in 1..=file.len() {
        assert_eq!(read(&file, piece), Ok(vec![1, -2, 300]), "{piece}");
    }
}

#[test]
fn a_length_that_was_not_known_ends_with_the_file() {
    for length in [0, 0x7fff_f000, u32::MAX] {
        assert_eq!(read(&wav(1, 24_000, length, &[1, -2, 300]), 5), Ok(vec![1, -2, 300]));
    }
}

#[test]
fn what_follows_the_samples_is_no_sound() {
    assert_eq!(read(&wav(1, 24_000, 4, &[1, 2, 9, 9]), 7), Ok(vec![1, 2]));
}

#[test]
fn two_channels_become_one_and_another_rate_becomes_ours() {
    assert_eq!(read(&wav(2, 24_000, 8, &[10, 20, i16::MAX, i16::MAX]), 9), Ok(vec![15, i16::MAX]));
    assert_eq!(read(&wav(1, 12_000, 0, &[7; 600]), 64).map(|samples| samples.len()), Ok(1_200));
}

#[test]
fn a_format_in_an_extension_is_looked_at() {
    let extended = |tag: u16| {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x28\0\0\0\xfe\xff\x01\0".to_vec();
        file.extend(24_000_u32.to_le_bytes());
        file.extend([0; 6]);
        file.extend(16_u16.to_le_bytes());
        file.extend([0; 8]);
        file.extend(tag.to_le_bytes());
        file.extend([0; 14]);
        file.extend(b"data\x02\0\0\0\x07\0");
        read(&file, 11)
    };
    assert_eq!(extended(PCM), Ok(vec![7]));
    assert_eq!(extended(3), Err(AudioError::NotPcm16), "floats");
}

#[test]
fn what_is_no_speech_is_refused() {
    let float = {
        let mut file = wav(1, 24_000, 0, &[]);
        let at = file.windows(4).position(|four| four == b"fmt ").unwrap() + 8;
        file[at] = 3;
        file
    };
    let endless = [&b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff"[..], &[0; 100]].concat();
    let many = [&b"RIFF\0\0\0\0WAVE"[..], &b"junk\0\0\0\0".repeat(9_000)].concat();
    for (file, error) in [
        (b"<html>".to_vec(), AudioError::NotWav),
        (b"RIFF\0\0\0\0AVI LIST".to_vec(), AudioError::NotWav),
        (b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd".to_vec(), AudioError::NoFormat),
        (float, AudioError::NotPcm16),
        (wav(1, 96_000, 0, &[1]), AudioError::Unsupported { rate: 96_000, channels: 1 }),
        (wav(3, 24_000, 0, &[1]), AudioError::Unsupported { rate: 24_000, channels: 3 }),
        (endless, AudioError::HeaderTooLong),
        (many, AudioError::HeaderTooLong),
        (Vec::new(), AudioError::Truncated),
        (wav(1, 24_000, 6, &[])[..30].to_vec(), AudioError::Truncated),
        (wav(1, 24_000, 6, &[1, 2]), AudioError::Truncated),
    ] {
        assert_eq!(read(&file, 64), Err(error), "{:?}", String::from_utf8_lossy(&file[..file.len().min(60)]));
    }
}

proptest! {
    #[test]
    fn it_makes_no_difference_where_chunks_are_cut(
        samples in prop::collection::vec(any::<i16>(), 1..100),
        piece in 1_usize..60,
        rate in prop::sample::select(vec![8_000_u32, 22_050, 24_000, 44_100]),
    ) {
        let file = wav(1, rate, 2 * samples.len() as u32, &samples);
        prop_assert_eq!(read(&file, piece), read(&file, file.len()));
    }

    #[test]
    fn any_bytes_are_sound_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50) {
        let _ = read(&bytes, piece);
        let _ = read(&[b"RIFF\0\0\0\0WAVE".as_slice(), &bytes].concat(), piece);
        let _ = read(&[&wav(2, 22_050, 40, &[])[..], &bytes].concat(), piece);
    }
}
