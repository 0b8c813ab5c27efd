//! A user who is blocked, and hears the farewell.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use serde_json::json;

use super::providers::{PROVIDERS, Provider, ProviderKind};
use super::{pass, said};
use crate::voice::harness::{ClientAction, VoiceHarness};

const FAREWELL: &str = "Let us take a break.";

/// Plays a user who is blocked. Gives what the client got before it had played everything, and after.
async fn be_blocked(harness: &VoiceHarness) -> (String, String) {
    let client = harness.call(CallRequest::default()).await;
    client.send_text("You fool!").await;
    let mut before = String::new();
    let is_said = |received: &str| {
        // The model may begin to speak before the handler, on its own thread, has answered.
        received.contains("\nresult ")
            && said(received).contains(FAREWELL)
            && received.trim_end().ends_with("turn complete")
    };
    for _ in 0..60 {
        pass(Duration::from_millis(250)).await;
        before.push_str(client.received().trim_start_matches('\n'));
        if is_said(&before) {
            break;
        }
    }
    assert_eq!(harness.agent.active_calls(), 1, "the farewell has not been played: {before}");
    client.send(ClientAction::Drained).await;
    pass(Duration::from_millis(100)).await;
    (before, client.received())
}

fn assert_heard(before: &str, after: &str) {
    assert!(said(before).contains(FAREWELL), "a transcript: {before}");
    let (_, since) = before.split_once("result ").unwrap_or_else(|| panic!("no result: {before}"));
    assert!(since.contains("\naudio "), "a sound after the block: {before}");
    assert_eq!(after, format!("end blocked closing={FAREWELL} text=-\nclosed: Ended\n"));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_user_hears_the_farewell_whether_the_model_speaks_by_itself_or_not() {
    let call = json!({ "call": { "name": "shut_out", "args": { "what": "x" } } });
    let asked = json!({ "begins": "text", "containing": "farewell", "steps": [{ "say": FAREWELL }] });
    for turns in [
        json!([{ "begins": "text", "steps": [call, { "say": FAREWELL }] }]),
        json!([{ "begins": "text", "steps": [call, { "await": "answers" }] }, asked]),
        json!([{ "begins": "text", "steps": [call, { "say": "Right." }] }, asked]),
    ] {
        for kind in PROVIDERS {
            let says_something_else = turns[0]["steps"][1]["say"] == "Right.";
            if kind == ProviderKind::OpenAi && says_something_else {
                continue;
            }
            let provider = Provider::new(kind, &turns);
            let harness = provider.harness();
            let (before, after) = be_blocked(&harness).await;
            assert_heard(&before, &after);
            provider.assert_clean(&before, "a block");
        }
    }
}
