//! Any bytes as what a synthesiser writes: samples within bounds, or a reason, never a panic. Where a piece is cut makes no
//! difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_local_speech::WavReader;

fn read(pieces: &[&[u8]]) -> Result<Vec<i16>, &'static str> {
    let mut reader = WavReader::default();
    let mut samples = Vec::new();
    for piece in pieces {
        samples.extend(reader.take(piece)?);
    }
    samples.extend(reader.finish()?);
    Ok(samples)
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else { return };
    let (begin, end) = file.split_at(usize::from(*cut).min(file.len()));
    assert_eq!(read(&[file]), read(&[begin, end]));
});
