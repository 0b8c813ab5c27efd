//! Any lines as messages of OpenAI Realtime, in one conversation: nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::{Audio, LiveEvent};
use quarterdeck_transports::openai::realtime::ServerEvents;
use tokio::time::Instant;

fuzz_target!(|data: &[u8]| {
    let (mut events, now) = (ServerEvents::default(), Instant::now());
    for message in data.split(|byte| *byte == b'\n') {
        events.take(message, now);
        while let Some(event) = events.next_event() {
            if let LiveEvent::Audio(Audio::Base64(text)) = event {
                assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
            }
        }
    }
});
