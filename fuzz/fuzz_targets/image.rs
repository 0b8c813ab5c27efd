//! Any bytes as an image, and as the answer of an image provider: type and size within bounds, or a reason, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::{ImageInfo, MAX_IMAGE_SIDE_PIXELS};
use quarterdeck_transports::{gemini, openai};

fuzz_target!(|data: &[u8]| {
    check(data);
    for read_image in [openai::images::read_image, gemini::images::read_image] {
        if let Ok(bytes) = read_image(data) {
            check(&bytes);
        }
    }
});

fn check(bytes: &[u8]) {
    if let Some(ImageInfo { width, height, .. }) = ImageInfo::read(bytes) {
        assert!((1..=MAX_IMAGE_SIDE_PIXELS).contains(&width) && (1..=MAX_IMAGE_SIDE_PIXELS).contains(&height));
        // A head that is cut anywhere inside its size is not an image.
        assert!(bytes.len() > 9);
    }
}
