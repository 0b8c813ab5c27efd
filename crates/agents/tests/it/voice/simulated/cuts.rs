//! The conversation with two tools, and a connection that is cut after every frame of it. A pipeline has none: its engines fail
//! instead, at every event of theirs, which `engine_faults.rs` plays.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_simulator::live::{Disconnect, DisconnectAfter};

use super::conversation::two_tools;
use super::providers::{Provider, Simulation, gemini, openai_answers, scenario};
use super::{converse, said};
use crate::voice::harness::{FakeClient, VoiceHarness};

/// How long a turn may take, reconnects included.
const TURN: Duration = Duration::from_secs(8);

/// Plays the conversation, of which nothing may be lost and nothing done twice.
pub(super) async fn assert_undamaged(provider: &Provider, what: &str) -> (VoiceHarness, FakeClient, String) {
    let harness = provider.harness();
    let client = harness.call(CallRequest::default()).await;
    let received = converse(&harness, &client, TURN).await;
    provider.assert_clean(&received, what);
    assert_eq!(harness.runs("book"), 1, "{what}\n{received}");
    assert!(said(&received).contains("booked"), "{what}: the booking is answered\n{received}");
    (harness, client, received)
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_at_every_frame_loses_nothing_and_does_nothing_twice() {
    let mut cuts = 0;
    for count in 0.. {
        let mut is_cut = false;
        for after in [DisconnectAfter::Sent(count), DisconnectAfter::Received(count)] {
            let disconnect = Disconnect { connection: 1, after };
            let (model, simulator) = gemini(scenario(&two_tools()).with_disconnect(disconnect));
            let provider = Provider { model, simulation: Simulation::Gemini(simulator) };
            let what = format!("cut {after:?}");
            let (harness, _, received) = assert_undamaged(&provider, &what).await;
            assert_eq!(harness.runs("look"), 1, "{what}\n{received}");
            assert!(said(&received).contains("You are welcome."), "{what}: the call goes on\n{received}");
            is_cut |= provider.losses() > 0;
            cuts += usize::from(provider.losses() > 0);
        }
        // The conversation does not have so many frames.
        if count > 0 && !is_cut {
            break;
        }
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

#[tokio::test(start_paused = true)]
async fn another_provider_cut_at_every_event_goes_on_and_does_nothing_twice() {
    let mut cuts = 0;
    for count in 0.. {
        let mut is_cut = false;
        for after in [DisconnectAfter::Sent(count), DisconnectAfter::Received(count)] {
            let simulator = openai_answers(&two_tools()).with_disconnect(Disconnect { connection: 1, after });
            let provider = Provider::openai(simulator.clone());
            let what = format!("cut {after:?}");
            let (_, _, received) = assert_undamaged(&provider, &what).await;
            let report = simulator.report();
            let all = format!("{what}\n{received}\n{report:#?}");
            assert_eq!(received.matches("turn complete").count(), 3, "the call goes on: {all}");
            assert!(report.calls.iter().all(|call| call.outputs.len() <= 1), "{all}");
            is_cut |= provider.losses() > 0;
            cuts += usize::from(provider.losses() > 0);
        }
        if count > 0 && !is_cut {
            break;
        }
    }
    assert!(cuts > 40, "only {cuts} cuts");
}
