//! What fuzz targets reach of the readers of foreign bytes.

use std::sync::Arc;

use super::http::sse::EventReader;
use super::inbound::{Inbound, Reading};
use super::message::MessageLimits;

/// Any bytes as messages of a server, and as a stream of events: read, refused or ignored, never a panic, and the same
/// however they arrive.
pub fn fuzz_messages(data: &[u8]) {
    let inbound = Inbound::new(MessageLimits { bytes: 4_096, depth: 16 }, Arc::default());
    for line in data.split(|byte| *byte == b'\n') {
        // Nothing was asked, so that nothing is an answer.
        assert!(
            !matches!(inbound.read(line), Reading::Refused(_)),
            "a call was answered that was never made"
        );
    }
    let read = |chunks: [&[u8]; 2]| {
        let (mut reader, mut events) = (EventReader::new(4_096), Vec::new());
        let read = chunks.into_iter().try_for_each(|chunk| reader.read(chunk, &mut events));
        (read, events)
    };
    let middle = data.len() / 2;
    assert_eq!(read([data, b""]), read([&data[..middle], &data[middle..]]));
}
