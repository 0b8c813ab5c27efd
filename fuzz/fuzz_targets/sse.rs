//! Any bytes as server-sent events: the same ones wherever the packets end, and none larger than allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_transports::sse::{Decoder, Event};

const MAX_EVENT_BYTES: usize = 4 << 10;

fuzz_target!(|data: &[u8]| {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = decode(stream.chunks(stream.len().max(1)));
    assert_eq!(whole, decode(stream.chunks(usize::from(*cut).max(1))));
});

fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<(String, String)>, bool) {
    let (mut decoder, mut events) = (Decoder::new(MAX_EVENT_BYTES), Vec::new());
    let mut keep = |event: Event<'_>| {
        // A byte that is no UTF-8 is replaced by three.
        assert!(event.data.len() <= 3 * MAX_EVENT_BYTES);
        events.push((event.name.to_owned(), event.data.to_owned()));
    };
    for chunk in chunks {
        if decoder.feed(chunk, &mut keep).is_err() {
            return (events, false);
        }
    }
    let fits = decoder.end(&mut keep).is_ok();
    (events, fits)
}
