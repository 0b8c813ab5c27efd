//! Audio as samples, in any encoding.

use std::borrow::Cow;

use base64_simd::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use quarterdeck_contracts::Audio;

/// The bytes of a piece of audio. Its base64 was checked when it was made, so invalid base64 is a mistake of ours, and
/// becomes silence.
pub(crate) fn samples<'a>(audio: &'a Audio<'_>) -> Cow<'a, [u8]> {
    match audio {
        Audio::Pcm(bytes) => Cow::Borrowed(bytes),
        Audio::Base64(text) => Cow::Owned(STANDARD.decode_to_vec(text.as_bytes()).unwrap_or_default()),
    }
}

pub(crate) fn is_empty(audio: &Audio<'_>) -> bool {
    match audio {
        Audio::Pcm(bytes) => bytes.is_empty(),
        Audio::Base64(text) => text.is_empty(),
    }
}

/// Whole samples of base64 in any of its dialects. Half a sample at the end is dropped.
pub(crate) fn pcm(text: &str) -> Option<Vec<u8>> {
    let dialects = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let mut bytes = dialects.iter().find_map(|dialect| dialect.decode_to_vec(text.as_bytes()).ok())?;
    bytes.truncate(bytes.len() & !1);
    Some(bytes)
}

/// Audio in base64: as it is if it is valid, else decoded leniently.
pub(crate) fn audio_from_base64(text: String) -> Option<Audio<'static>> {
    if STANDARD.check(text.as_bytes()).is_ok() && holds_whole_samples(&text) {
        return Some(Audio::Base64(text.into()));
    }
    pcm(&text).map(|bytes| Audio::Pcm(bytes.into()))
}

/// Whether base64 that is valid and padded holds samples, and no half of one.
pub(crate) fn holds_whole_samples(text: &str) -> bool {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = text.len() / 4 * 3 - padding;
    bytes > 0 && bytes.is_multiple_of(2)
}
