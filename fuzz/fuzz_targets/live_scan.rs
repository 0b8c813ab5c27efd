//! Any bytes as a message of Gemini Live: nothing panics, and what the scanner finds is what the parser finds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::{Audio, LiveEvent};
use quarterdeck_transports::gemini::live::{ServerMessages, scan};

fuzz_target!(|data: &[u8]| {
    check(data);
    // Few bytes are a message by themselves, so they also stand where its audio does, and around it.
    let (begin, rest) = data.split_at(data.len() / 2);
    let blob = br#""inlineData":{"mimeType":"audio/pcm;rate=24000","data":""#;
    check(&[br#"{"serverContent":{"modelTurn":{"parts":[{"#, &blob[..], data, br#""}}]}}}"#].concat());
    check(
        &[
            br#"{"serverContent":{"modelTurn":{"#,
            begin,
            br#""parts":[{"#,
            &blob[..],
            br#"AQI="}}]"#,
            rest,
            b"}}}",
        ]
        .concat(),
    );
});

fn check(message: &[u8]) {
    let mut messages = ServerMessages::default();
    messages.take(message);
    let parsed: Vec<_> = std::iter::from_fn(|| messages.next_event()).collect();
    if let Some(found) = scan(message) {
        assert_eq!(parsed, [LiveEvent::Audio(Audio::Base64(found.into()))]);
    }
}
