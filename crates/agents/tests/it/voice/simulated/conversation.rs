//! A conversation with tools.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use serde_json::{Value, json};

use super::providers::{PROVIDERS, Provider, ProviderKind};
use super::{converse, said};

/// A greeting, a turn with two tools, one of which writes, and a turn after it.
pub(super) fn two_tools() -> Value {
    json!([
        { "begins": "text", "containing": "day", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": { "name": "look", "args": { "what": "room" } } },
            { "call": { "name": "book", "args": { "what": "room" } } },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ])
}

#[tokio::test(start_paused = true)]
async fn every_provider_calls_the_same_tools_and_says_the_same() {
    for kind in PROVIDERS {
        let provider = Provider::new(kind, &two_tools());
        let harness = provider.harness();
        let client = harness.call(CallRequest::default()).await;
        let received = converse(&harness, &client, Duration::from_secs(8)).await;
        let name = match kind {
            ProviderKind::Gemini => "gemini/gemini-3.8-live",
            ProviderKind::OpenAi => "openai/gpt-realtime-2.1",
            ProviderKind::Pipeline => "pipeline/scripted/chat",
        };
        assert!(received.starts_with(&format!("ready {name} resumed=false\n")), "{received}");
        let looks = u32::from(kind != ProviderKind::OpenAi);
        assert_eq!((harness.runs("book"), harness.runs("look")), (1, looks), "{kind:?}: {received}");
        for answer in ["Hello.", "It is booked.", "You are welcome."] {
            assert!(said(&received).contains(answer), "{kind:?}: {received}");
        }
        assert_eq!(received.matches("turn complete").count(), 3, "{kind:?}: {received}");
        assert!(!received.contains("error"), "{kind:?}: {received}");
        provider.assert_clean(&received, "a conversation");
    }
}
