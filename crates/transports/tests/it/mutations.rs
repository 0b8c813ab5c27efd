//! Streams that were damaged on the way: a reply or a reason, never a panic, wherever the packets end.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use quarterdeck_contracts::{ChatMessage, ModelMessage};
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, OpenAiConfig, anthropic, gemini, openai};
use serde_json::Value;

use crate::fixtures::{read, request, user};
use crate::goldens::streams;

/// What to do at a place of a stream.
#[derive(Debug, Clone)]
enum Damage {
    Replace(u8),
    Remove(usize),
    Repeat(usize),
    Insert(&'static str),
}

fn damage() -> impl Strategy<Value = (Index, Damage)> {
    let tokens = vec![
        "null", "{}", "[]", "\"", "\\", "\n\n", "\r", "data: ", "{", "}", "-1", "1e999", "[DONE]", "\u{feff}",
    ];
    let damage = prop_oneof![
        any::<u8>().prop_map(Damage::Replace),
        (1..200_usize).prop_map(Damage::Remove),
        (1..200_usize).prop_map(Damage::Repeat),
        select(tokens).prop_map(Damage::Insert),
    ];
    (any::<Index>(), damage)
}

fn apply(stream: &mut Vec<u8>, at: usize, damage: Damage) {
    let end = |length: usize| (at + length).min(stream.len());
    match damage {
        Damage::Replace(byte) if at < stream.len() => stream[at] = byte,
        Damage::Replace(byte) => stream.push(byte),
        Damage::Remove(length) => drop(stream.drain(at..end(length))),
        Damage::Repeat(length) => {
            let piece = stream[at..end(length)].to_vec();
            stream.splice(at..at, piece);
        }
        Damage::Insert(text) => drop(stream.splice(at..at, text.bytes())),
    }
}

/// The message as it is stored, and as every provider is sent it.
fn use_it(message: ModelMessage) {
    let stored = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<ModelMessage>(&stored).unwrap(), message);
    let request = request("", vec![user("?"), ChatMessage::Model(message)], Vec::new());
    for body in [
        gemini::body(&GeminiConfig::new("k"), "gemini/m", &request),
        openai::body(&OpenAiConfig::new("k", "m"), "openai/m", &request),
        anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", &request),
    ] {
        assert!(matches!(body, Value::Object(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_damaged_stream_comes_to_one_end(
        sample in any::<Index>(),
        damages in proptest::collection::vec(damage(), 0..4),
        size in 1..50_usize,
    ) {
        let samples = streams();
        let (provider, path) = sample.get(&samples);
        let mut stream = std::fs::read(path).unwrap();
        for (at, damage) in damages {
            let at = at.index(stream.len() + 1);
            apply(&mut stream, at, damage);
        }
        let whole = read(provider, [&stream[..]]);
        let pieces = read(provider, stream.chunks(size));
        prop_assert_eq!(&whole, &pieces);
        if let Ok(reply) = whole.1 {
            use_it(reply.message);
        }
    }
}
