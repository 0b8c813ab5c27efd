//! Tools that are known to be slow: something is said at once, or the result comes later, or the call does not start.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{
    ClientAction, FakeClient, VoiceHarness, run_until_idle, tool_calls, turn_complete, user_said,
};

const FILLER: &str = "One moment, please.";

/// The user asks, and the model calls a tool that takes so long.
async fn call(harness: &VoiceHarness, id: &str, tool: &str, takes_ms: u64) {
    let args = json!({ "what": takes_ms.to_string() });
    harness.model.send_all([user_said("Do it."), tool_calls(&[(id, tool, args)])]).await;
}

/// Calls a tool until it is known how long it takes, each time in a turn of its own.
async fn measure(harness: &VoiceHarness, client: &FakeClient, round: &str, tool: &str, takes_ms: u64) {
    for number in 0..5 {
        // A client that is silent for long counts as lost.
        client.send(ClientAction::Drained).await;
        call(harness, &format!("{round}-000000{number}"), tool, takes_ms).await;
        tokio::time::sleep(Duration::from_millis(takes_ms + 1_000)).await;
        harness.model.send(turn_complete()).await;
    }
    harness.model.take_inputs();
}

/// How often something was scheduled in this way.
fn scheduled(harness: &VoiceHarness, tool: &str) -> Value {
    harness.orchestrator.metrics().json()["tools"][tool]["scheduled"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_filler_is_spoken_at_once_for_a_tool_that_is_known_to_be_slow() {
    let harness = VoiceHarness::with_filler(FILLER);
    let client = harness.connect_client().await;
    measure(&harness, &client, "known", "paced", 3_000).await;
    call(&harness, "call-0000001", "paced", 3_000).await;
    run_until_idle().await;
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches(FILLER).count(), 1, "{inputs}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("result function-call-0000001") && !inputs.contains(FILLER), "{inputs}");
    assert_eq!(scheduled(&harness, "paced"), json!({ "inline": 5, "filler": 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_fast_tool_gets_no_filler_until_it_is_slow_for_once() {
    let harness = VoiceHarness::with_filler(FILLER);
    let client = harness.connect_client().await;
    measure(&harness, &client, "known", "paced", 100).await;
    call(&harness, "call-0000001", "paced", 100).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("result function-call-0000001") && !inputs.contains(FILLER), "{inputs}");
    harness.model.send(turn_complete()).await;

    call(&harness, "call-0000002", "paced", 4_000).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(harness.model.take_inputs(), "", "it may still be as fast as usual");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches(FILLER).count(), 1, "{inputs}");
    assert_eq!(scheduled(&harness, "paced"), json!({ "inline": 7 }));
}

#[tokio::test(start_paused = true)]
async fn two_slow_calls_of_a_message_get_one_filler() {
    let harness = VoiceHarness::with_filler(FILLER);
    let client = harness.connect_client().await;
    measure(&harness, &client, "known", "paced", 3_000).await;
    let calls = [
        ("call-0000001", "paced", json!({ "what": "3000" })),
        ("call-0000002", "paced", json!({ "what": "3001" })),
    ];
    harness.model.send_all([user_said("Do both."), tool_calls(&calls)]).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches(FILLER).count(), 1, "{inputs}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_that_may_go_on_in_the_background_is_a_task_at_once() {
    let harness = VoiceHarness::with_filler(FILLER);
    let client = harness.connect_client().await;
    call(&harness, "call-0000001", "paced_auto", 3_000).await;
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    assert!(!harness.model.take_inputs().contains("result function"), "an unknown tool is waited for");
    tokio::time::sleep(Duration::from_secs(3)).await;
    harness.model.send(turn_complete()).await;

    measure(&harness, &client, "known", "paced_auto", 3_000).await;
    call(&harness, "call-0000002", "paced_auto", 3_000).await;
    run_until_idle().await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("result function-call-0000002") && inputs.contains("running"), "{inputs}");
    assert!(!inputs.contains(FILLER), "{inputs}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(harness.runs("paced_auto"), 7);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_refused_until_its_figures_are_old() {
    let harness = VoiceHarness::with_filler(FILLER);
    let client = harness.connect_client().await;
    measure(&harness, &client, "known", "paced", 20_000).await;
    client.received();
    call(&harness, "call-0000001", "paced", 20_000).await;
    run_until_idle().await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.ends_with("1 result function-call-0000001 MODE_RESTRICTED last\n"), "{inputs}");
    assert!(!inputs.contains(FILLER), "{inputs}");
    assert_eq!(harness.runs("paced"), 5, "nothing was done");
    harness.model.send(turn_complete()).await;

    harness.clock.advance(Duration::from_secs(11 * 60));
    call(&harness, "call-0000002", "paced", 100).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains(FILLER) && inputs.contains("result function-call-0000002"), "{inputs}");
    assert_eq!(harness.runs("paced"), 6, "it is tried again");
    harness.model.send(turn_complete()).await;

    measure(&harness, &client, "anew", "paced", 100).await;
    call(&harness, "call-0000003", "paced", 100).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("result function-call-0000003") && !inputs.contains(FILLER), "{inputs}");
    assert_eq!(scheduled(&harness, "paced"), json!({ "inline": 7, "filler": 5, "refuse": 1 }));
}
