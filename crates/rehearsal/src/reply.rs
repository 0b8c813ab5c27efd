//! A reply before it is streamed, and the ids of its calls.

use quarterdeck_contracts::{ChatMessage, ChatRequest};
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    /// Comes before the calls.
    pub(crate) text: String,
    /// Names and arguments.
    pub(crate) calls: Vec<(String, Value)>,
}

impl Reply {
    pub(crate) fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }

    pub(crate) fn call(name: &str, arguments: Value) -> Self {
        Self { text: String::new(), calls: vec![(name.to_owned(), arguments)] }
    }

    /// Neither text nor calls.
    pub(crate) fn silence() -> Self {
        Self::default()
    }
}

/// The ids of the calls of one reply. They depend on the whole conversation before it, so that the same request gives
/// the same ids, and another place in the conversation others, also after old turns were dropped.
pub(crate) fn call_ids(request: &ChatRequest, calls: &[(String, Value)]) -> Vec<String> {
    let mut history = Fnv::default();
    for message in &request.messages {
        match message {
            ChatMessage::User { text } => history.add_ends(text),
            ChatMessage::Model(message) => {
                history.add_ends(&message.text());
                message
                    .calls()
                    .for_each(|call| history.add(call.id.as_deref().unwrap_or(&call.name).as_bytes()));
            }
            ChatMessage::Tools { results } => {
                results.iter().for_each(|result| history.add(result.response.meta.timestamp.as_bytes()));
            }
        }
        history.add(b"\n");
    }
    let id = |(nth, (name, arguments)): (usize, &(String, Value))| {
        let mut hash = history.clone();
        hash.add(&nth.to_le_bytes());
        hash.add(name.as_bytes());
        hash.add(arguments.to_string().as_bytes());
        format!("rehearsal-{:016x}", hash.0)
    };
    calls.iter().enumerate().map(id).collect()
}

/// FNV-1a: these ids must be stable and differ from each other, nothing else.
#[derive(Clone)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Beginning, end and length of a text: a message of a megabyte should not cost a megabyte's time.
    fn add_ends(&mut self, text: &str) {
        const END: usize = 512;
        let bytes = text.as_bytes();
        self.add(&bytes.len().to_le_bytes());
        self.add(&bytes[..bytes.len().min(END)]);
        self.add(&bytes[bytes.len().saturating_sub(END)..]);
    }
}
