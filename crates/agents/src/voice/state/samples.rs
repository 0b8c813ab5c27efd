//! Samples of audio in whatever encoding it came.

use base64_simd::STANDARD;
use quarterdeck_contracts::Audio;

/// Adds the samples of a piece. One that cannot be decoded is silence, and as long.
pub(super) fn append_samples(audio: &Audio<'_>, to: &mut Vec<i16>) {
    let mut append =
        |bytes: &[u8]| to.extend(bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)));
    match audio {
        Audio::Pcm(bytes) => append(bytes),
        Audio::Base64(text) => match STANDARD.decode_to_vec(text.as_bytes()) {
            Ok(bytes) => append(&bytes),
            Err(_) => append(&vec![0; audio.samples_len()]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_have_the_same_samples() {
        let bytes: Vec<u8> = (0..=255).collect();
        let (mut pcm, mut base64) = (Vec::new(), Vec::new());
        append_samples(&Audio::Pcm((&*bytes).into()), &mut pcm);
        append_samples(&Audio::Base64(STANDARD.encode_to_string(&bytes).into()), &mut base64);
        assert_eq!((pcm.len(), &pcm), (128, &base64));
        assert_eq!(pcm[1], i16::from_le_bytes([2, 3]));
    }

    #[test]
    fn what_cannot_be_decoded_is_silence() {
        let mut samples = Vec::new();
        append_samples(&Audio::Base64("****".into()), &mut samples);
        assert_eq!(samples, [0]);
    }
}
