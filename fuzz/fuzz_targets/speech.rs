//! Any bytes as what a server answers to an utterance: words, or a reason, never a panic. Where a chunk of events is cut makes no
//! difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::{ChatErrorKind, Transcript};
use quarterdeck_transports::openai::speech::{TranscriptReader, read_transcript};

fn read_events(pieces: &[&[u8]]) -> Result<Transcript, ChatErrorKind> {
    let mut reader = TranscriptReader::default();
    for piece in pieces {
        if reader.feed(piece).map_err(|fault| fault.kind)? {
            break;
        }
    }
    reader.finish().map_err(|fault| fault.kind)
}

fn check(transcript: &Transcript) {
    assert!(transcript.confidence.is_none_or(|sure| (0.0..=1.0).contains(&sure)));
}

fuzz_target!(|data: &[u8]| {
    if let Ok(transcript) = read_transcript(data) {
        check(&transcript);
    }
    let Some((cut, stream)) = data.split_first() else { return };
    let (begin, end) = stream.split_at(usize::from(*cut).min(stream.len()));
    let whole = read_events(&[stream]);
    whole.iter().for_each(check);
    assert_eq!(whole, read_events(&[begin, end]));
});
