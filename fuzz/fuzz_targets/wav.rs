//! Any bytes as what a voice sends: samples within bounds, or a reason, never a panic. Where a piece is cut makes no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_audio::{AudioError, WavReader};

fn read(pieces: &[&[u8]]) -> Result<Vec<i16>, AudioError> {
    let mut reader = WavReader::new(24_000);
    let mut samples = Vec::new();
    for piece in pieces {
        samples.extend(reader.feed(piece)?);
    }
    samples.extend(reader.finish()?);
    Ok(samples)
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else { return };
    let (begin, end) = file.split_at(usize::from(*cut).min(file.len()));
    let whole = read(&[file]);
    assert_eq!(whole, read(&[begin, end]));
    // The slowest sound becomes three times as many samples of two bytes.
    whole.iter().for_each(|samples| assert!(samples.len() <= 2 * file.len()));
});
