//! Long conversations, in which connections end and are lost and the server is restarted.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use serde_json::{Value, json};

use super::conversation::two_tools;
use super::providers::{PROVIDERS, Provider, ProviderKind, Simulation};
use super::{pass, said};
use crate::voice::harness::ClientAction;

const TURNS: usize = 30;

/// Questions that are looked up. Three times the provider announces that it ends the connection, and twice it is lost: before
/// the answer, and in the middle of it.
fn questions() -> Value {
    let turn = |number: usize| {
        let mut steps = vec![json!({ "call": { "name": "look", "args": { "what": format!("{number}") } } })];
        let say = json!({ "say": format!("Answer number {number}.") });
        match number {
            10 => steps.extend([json!({ "drop": true, "on": 2 }), say]),
            20 => steps.extend([json!({ "say": "Answer" }), json!({ "drop": true, "on": 4 }), say]),
            5 | 15 | 25 => {
                let on = number / 5;
                steps.extend([json!({ "goAway": { "leftMs": 50_000 }, "on": on }), say]);
            }
            _ => steps.push(say),
        }
        json!({ "begins": "text", "containing": format!("question {number}?"), "steps": steps })
    };
    (1..=TURNS).map(turn).collect()
}

#[tokio::test(start_paused = true)]
async fn half_an_hour_with_three_handovers_and_two_losses_loses_no_turn() {
    // The simulator of OpenAI loses one connection at the most.
    for kind in [ProviderKind::Gemini, ProviderKind::Pipeline] {
        let provider = Provider::new(kind, &questions());
        let harness = provider.harness();
        let client = harness.call(CallRequest::default()).await;
        let began = tokio::time::Instant::now();
        let mut received = String::new();
        for number in 1..=TURNS {
            client.send_text(&format!("Question {number}?")).await;
            // A microphone that hears nothing but the room.
            for _ in 0..60 {
                client.send(ClientAction::Audio(vec![0; 640])).await;
                pass(Duration::from_millis(995)).await;
            }
            client.send(ClientAction::Drained).await;
            let now = client.received();
            let answer = format!("Answer number {number}.");
            assert!(said(&now).contains(&answer), "{kind:?}: turn {number}: {now}");
            received.push_str(&now);
        }
        assert!(began.elapsed() >= Duration::from_secs(1_800));
        provider.assert_clean(&received, "half an hour");
        assert_eq!(provider.losses(), 5, "{kind:?}");
        assert_eq!(received.matches("turn complete").count(), TURNS, "{kind:?}: {received}");
        assert_eq!(harness.runs("look") as usize, TURNS, "{kind:?}: nothing is looked up twice");
        assert!(!received.contains("error"), "{kind:?}: {received}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_mid_conversation_loses_no_turn() {
    for kind in PROVIDERS {
        let provider = Provider::new(kind, &two_tools());
        let harness = provider.harness();
        let client = harness.call(CallRequest::default()).await;
        client.send_text("Good day").await;
        pass(Duration::from_secs(20)).await;
        harness.agent.drain(Duration::from_secs(1)).await;
        pass(Duration::from_secs(2)).await;
        let request = harness.session().await;
        let next = harness.restarted_with(provider.model.clone());
        drop(harness);
        let client = next.call(request).await;
        let ready = client.received();
        assert!(ready.starts_with("ready ") && ready.contains(" resumed=true\n"), "{kind:?}: {ready}");
        for text in ["Book the room", "Many thanks"] {
            client.send_text(text).await;
            pass(Duration::from_secs(20)).await;
        }
        let received = client.received();
        provider.assert_clean(&received, "restart");
        assert_eq!(next.runs("book"), 1, "{kind:?}: {received}");
        assert!(!said(&received).contains("Hello."), "{kind:?}: nothing is said again: {received}");
        for answer in ["It is booked.", "You are welcome."] {
            assert!(said(&received).contains(answer), "{kind:?}: {received}");
        }
        match &provider.simulation {
            Simulation::Gemini(simulator) => {
                let report = simulator.report();
                assert_eq!((report.turns, report.resumptions), (3, 1), "{received}");
            }
            // Without a handle the model is told what was said.
            Simulation::Pipeline(engines) => {
                let last = format!("{:?}", engines.requests().last().unwrap().messages);
                assert!(last.contains("Good day") && last.contains("Hello."), "{last}");
            }
            Simulation::OpenAi(_) => {}
        }
    }
}
