//! The type of an image, read from its bytes. What a sender says about it is not believed, and nothing else is an image
//! here: an SVG may hold a script.

use serde::{Deserialize, Serialize};

/// A larger picture of one colour is a small file and fills a browser's memory.
pub const MAX_IMAGE_SIDE_PIXELS: u32 = 8_192;

/// The image types that are kept and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ImageType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageType {
    /// For `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// How a file of this type ends.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
        }
    }
}

/// What the head of an image says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// Its type.
    pub kind: ImageType,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

impl ImageInfo {
    /// Reads type and size; `None` for everything that is not a PNG, a JPEG or a WebP of a sensible size. The picture itself
    /// is not decoded.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, (width, height)) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            (ImageType::Png, png_size(bytes)?)
        } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            (ImageType::Jpeg, jpeg_size(bytes)?)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
            (ImageType::Webp, webp_size(bytes)?)
        } else {
            return None;
        };
        let is_sensible = |side: u32| (1..=MAX_IMAGE_SIDE_PIXELS).contains(&side);
        (is_sensible(width) && is_sensible(height)).then_some(Self { kind, width, height })
    }
}

/// The first chunk of a PNG is its header.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(8..16)? != b"\0\0\0\x0dIHDR" {
        return None;
    }
    let side = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((side(16)?, side(20)?))
}

/// The size stands in the frame header, after any number of other segments.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            // A fill byte before a marker.
            0xff => at += 1,
            // Frame headers, without the three markers among them that mean something else.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((u32::from(short(at + 7)?), u32::from(short(at + 5)?)));
            }
            // The picture begins, or has ended, before its size was told.
            0xd8..=0xda | 0x00 => return None,
            _ => {
                let length = usize::from(short(at + 2)?);
                // Less would not even hold the length itself, and never end.
                if length < 2 {
                    return None;
                }
                at += 2 + length;
            }
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let byte = |at: usize| bytes.get(at).map(|byte| u32::from(*byte));
    let short = |at: usize| Some(byte(at)? | byte(at + 1)? << 8);
    match bytes.get(12..16)? {
        // Lossy: after the start code, fourteen bits each.
        b"VP8 " if bytes.get(23..26)? == [0x9d, 0x01, 0x2a] => {
            Some((short(26)? & 0x3fff, short(28)? & 0x3fff))
        }
        // Lossless: after the signature, fourteen bits each, less one.
        b"VP8L" if byte(20)? == 0x2f => {
            let bits = short(21)? | short(23)? << 16;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        // Extended: twenty-four bits each, less one.
        b"VP8X" => Some(((short(24)? | byte(26)? << 16) + 1, (short(27)? | byte(29)? << 16) + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, b'J', b'F', 0xff, 0xff, 0xc2, 0, 11, 8];
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes
    }

    fn webp(chunk: &[u8]) -> Vec<u8> {
        [b"RIFF\0\0\0\0WEBP", chunk].concat()
    }

    fn read(bytes: &[u8]) -> Option<(ImageType, u32, u32)> {
        ImageInfo::read(bytes).map(|info| (info.kind, info.width, info.height))
    }

    #[test]
    fn type_and_size_are_read_from_the_bytes() {
        assert_eq!(read(&png(1024, 768)), Some((ImageType::Png, 1024, 768)));
        assert_eq!(read(&jpeg(640, 480)), Some((ImageType::Jpeg, 640, 480)));
        let lossy = b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\x00";
        assert_eq!(read(&webp(lossy)), Some((ImageType::Webp, 320, 240)));
        // 320 - 1 in the low fourteen bits, 240 - 1 in the next.
        let bits: u32 = 319 | 239 << 14;
        let lossless = [b"VP8L\0\0\0\0\x2f".as_slice(), &bits.to_le_bytes()].concat();
        assert_eq!(read(&webp(&lossless)), Some((ImageType::Webp, 320, 240)));
        let extended = b"VP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0";
        assert_eq!(read(&webp(extended)), Some((ImageType::Webp, 320, 240)));
    }

    #[test]
    fn everything_else_is_not_an_image() {
        let page = b"<html><script>alert(1)</script>".as_slice();
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>".as_slice();
        for bytes in [b"".as_slice(), b"GIF89a\x01\0\x01\0", page, svg, b"%PDF-1.7", b"RIFF\0\0\0\0WAVEfmt "]
        {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn an_image_without_a_sensible_size_is_refused() {
        for (width, height) in [(0, 10), (10, 0), (MAX_IMAGE_SIDE_PIXELS + 1, 10), (u32::MAX, u32::MAX)] {
            assert_eq!(read(&png(width, height)), None, "{width} x {height}");
        }
        assert!(read(&png(MAX_IMAGE_SIDE_PIXELS, 1)).is_some());
        // A segment whose length is nothing would be read for ever.
        assert_eq!(read(&[0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0]), None);
        assert_eq!(read(&[0xff, 0xd8, 0xff, 0xda, 0, 8]), None, "the picture began before its size was told");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_a_cut_head_is_never_an_image(tail in proptest::collection::vec(any::<u8>(), 0..64)) {
            for head in [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &[0xff, 0xd8, 0xff], b"RIFF\0\0\0\0WEBPVP8 ", b""] {
                let bytes = [head, &tail].concat();
                if let Some(info) = ImageInfo::read(&bytes) {
                    prop_assert!((1..=MAX_IMAGE_SIDE_PIXELS).contains(&info.width));
                    prop_assert!((1..=MAX_IMAGE_SIDE_PIXELS).contains(&info.height));
                    prop_assert!(bytes.len() >= 11);
                }
            }
        }
    }
}
