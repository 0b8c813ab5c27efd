//! Users who speak, and interrupt.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use serde_json::json;

use super::providers::{PROVIDERS, Provider, ProviderKind, Simulation};
use super::{pass, said, speak};

#[tokio::test(start_paused = true)]
async fn a_user_who_speaks_is_answered_and_can_barge_in() {
    let long = "This is a rather long answer that a user may well want to cut short before it ends.";
    let turns = json!([
        { "begins": "speech", "heard": "Tell me.", "steps": [{ "say": long }] },
        { "begins": "speech", "heard": "Stop.", "steps": [{ "say": "Gladly." }] },
    ]);
    // The simulator of OpenAI does not tell what it heard.
    for kind in [ProviderKind::Gemini, ProviderKind::Pipeline] {
        let provider = Provider::new(kind, &turns);
        let harness = provider.harness();
        let client = harness.call(CallRequest::default()).await;
        speak(&client, 800, true).await;
        speak(&client, 2_000, false).await;
        let received = client.received();
        assert!(received.contains("user: Tell me.") && received.contains("audio "), "{kind:?}: {received}");
        speak(&client, 800, true).await;
        let received = client.received();
        assert_eq!(received.matches("interrupted").count(), 1, "{kind:?}: {received}");
        speak(&client, 3_000, false).await;
        pass(Duration::from_secs(3)).await;
        let received = client.received();
        assert!(received.contains("user: Stop."), "{kind:?}: {received}");
        assert!(said(&received).contains("Gladly."), "{kind:?}: {received}");
        assert!(!said(&received).contains("ends."), "{kind:?}: the rest of it is gone: {received}");
        provider.assert_clean(&received, "speech");
        match &provider.simulation {
            Simulation::Gemini(simulator) => assert_eq!(simulator.report().interruptions, 1),
            Simulation::Pipeline(engines) => {
                let shown = format!("{:?}", engines.requests().last().unwrap().messages);
                assert!(shown.contains("This is a rather") && !shown.contains("it ends."), "{shown}");
            }
            Simulation::OpenAi(_) => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_provider_can_be_interrupted_while_it_speaks_and_during_playback() {
    let turns = json!([
        { "begins": "speech", "heard": "One.", "steps": [{ "say": "word ".repeat(400) }] },
        { "begins": "speech", "heard": "Two.", "steps": [{ "say": "One two three four five six." }] },
        { "begins": "speech", "heard": "Three.", "steps": [{ "say": "Gladly." }] },
    ]);
    for kind in PROVIDERS {
        let provider = Provider::new(kind, &turns);
        let harness = provider.harness();
        let client = harness.call(CallRequest::default()).await;
        let mut received = String::new();
        for interruptions in [0, 1, 2] {
            speak(&client, 400, true).await;
            speak(&client, 1_300, false).await;
            received.push_str(&client.received());
            assert_eq!(received.matches("interrupted").count(), interruptions, "{kind:?}: {received}");
        }
        pass(Duration::from_secs(3)).await;
        received.push_str(&client.received());
        assert!(said(&received).contains("Gladly."), "{kind:?}: {received}");
        provider.assert_clean(&received, "interruptions");
        if let Simulation::OpenAi(simulator) = &provider.simulation {
            let report = simulator.report();
            assert_eq!((report.heard, report.cancelled, report.truncated.len()), (3, 1, 2), "{report:#?}");
        }
        client.send_text("Are you there?").await;
        pass(Duration::from_secs(3)).await;
        assert_eq!(harness.agent.active_calls(), 1, "{kind:?}: the call is on");
    }
}
