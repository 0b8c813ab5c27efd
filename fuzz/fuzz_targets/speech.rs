//! Any bytes as what speech engines answer: words or samples within bounds, or a reason, never a panic. Where a chunk is
//! cut makes no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_transports::openai::speech::{WavReader, read_transcript};

fuzz_target!(|data: &[u8]| {
    if let Ok(transcript) = read_transcript(data) {
        assert!(transcript.confidence.is_none_or(|sure| (0.0..=1.0).contains(&sure)));
    }
    let Some((cut, file)) = data.split_first() else { return };
    let (begin, end) = file.split_at(usize::from(*cut).min(file.len()));
    let mut whole = WavReader::default();
    let mut in_pieces = WavReader::default();
    let all = whole.feed(file);
    let pieces = in_pieces.feed(begin).and_then(|mut first| {
        first.extend(in_pieces.feed(end)?);
        Ok(first)
    });
    if let (Ok(all), Ok(pieces)) = (&all, &pieces) {
        assert_eq!(all, pieces);
        assert_eq!(whole.finish().is_ok(), in_pieces.finish().is_ok());
    }
});
