//! Calls, cancellations, interruptions, departures and losses in any order, from numbers that can be played again.

use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::voice::{CallRequest, Parts, Settings, SpeechEngines, VoiceAgent};
use serde_json::{Value, json};

use super::case::Runs;
use super::tools::{orchestrator, registry};
use crate::voice::harness::{ClientAction, FakeClient, ann, run_until_idle};
use crate::voice::simulated::{model, scenario};

const TURNS: usize = 5;

/// Numbers that look like chance and are not.
struct Rng(u64);

impl Rng {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

fn call(what: &str, has_id: bool, rng: &mut Rng) -> Value {
    let name = rng.pick(&["look", "book", "slow_look", "slow_book"]);
    let mut call = json!({ "name": name, "args": { "what": what } });
    if !has_id && rng.below(2) == 0 {
        call["id"] = Value::Null;
    }
    call
}

/// A turn that does many things, and loses its connection at most once.
fn turn(number: usize, has_ids: bool, rng: &mut Rng) -> Value {
    let mut steps = Vec::new();
    for place in 0..=rng.below(4) {
        let next = match rng.below(8) {
            0 if has_ids => json!({ "cancel": "all" }),
            1 => json!({ "goAway": { "leftMs": rng.pick(&[100, 2_000, 8_000]) }, "on": rng.below(3) + 1 }),
            2 => json!({ "drop": true, "on": rng.below(3) + 1 }),
            3 => json!({ "wait": rng.pick(&[1, 200, 4_000]) }),
            4 => json!({ "say": "One moment, please." }),
            5 => json!({ "resumable": true }),
            _ => json!({ "await": "answers" }),
        };
        let calls = (0..=rng.below(2)).map(|nth| call(&format!("{number}.{place}.{nth}"), has_ids, rng));
        let calls: Vec<Value> = calls.collect();
        let behaviour = rng.pick(&["blocking", "nonBlocking", "nonBlocking"]);
        steps.extend([json!({ "call": calls, "behavior": behaviour }), next]);
    }
    steps.extend([json!({ "await": "answers" }), json!({ "say": "That is that." })]);
    json!({ "begins": "anything", "steps": steps, "interruption": if has_ids { "cancel" } else { "keep" } })
}

/// Who leaves a connection that is about to be closed need not wait for what it still has to answer there.
fn is_excused(fault: &str, turns: &[Value]) -> bool {
    let steps = turns.iter().flat_map(|turn| turn["steps"].as_array().unwrap());
    let mut leaving = steps.filter(|step| step["goAway"].is_object()).map(|step| &step["on"]);
    fault.ends_with("has no answer") && leaving.any(|on| fault.starts_with(&format!("connection {on}:")))
}

/// One conversation. Everything that is known when something is wrong with it.
async fn converse(seed: u64) {
    let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    // What has no id cannot be taken back by it.
    let has_ids = seed.is_multiple_of(2);
    let turns: Vec<Value> = (0..TURNS).map(|number| turn(number, has_ids, &mut rng)).collect();
    let (model, simulator) = model(scenario(&json!(turns)));
    let (runs, (orchestrator, _)) = (Runs::default(), orchestrator());
    let agent = VoiceAgent::new(Parts {
        orchestrator: orchestrator.clone(),
        registry: registry(&runs),
        model,
        engines: SpeechEngines::default(),
        prompts: Prompts::default(),
        settings: Settings::default(),
    });
    let (mut client, line) = FakeClient::new();
    agent.start_call(&ann(), CallRequest::default(), line).await;
    run_until_idle().await;
    let sessions = quarterdeck_runtime::list_sessions(&**orchestrator.store()).await.unwrap();
    let session_id = Some(sessions[0].id.as_str().into());
    let mut received = String::new();
    for number in 0..TURNS {
        client.send_text(&format!("Turn {number}.")).await;
        for _ in 0..rng.below(4) {
            tokio::time::sleep(Duration::from_millis(rng.pick(&[1, 300, 2_500]))).await;
            match rng.below(4) {
                0 => client.send(ClientAction::Interrupt).await,
                1 => {
                    client.disconnect().await;
                    let (again, line) = FakeClient::new();
                    let request = CallRequest {
                        session_id: session_id.clone(),
                        may_resume: true,
                        ..CallRequest::default()
                    };
                    agent.start_call(&ann(), request, line).await;
                    received.push_str(&client.received());
                    client = again;
                }
                _ => client.send(ClientAction::Drained).await,
            }
        }
        tokio::time::sleep(Duration::from_secs(rng.pick(&[1, 30]))).await;
    }
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.send(ClientAction::Drained).await;
    }
    received.push_str(&client.received());
    let report = simulator.report();
    let known = || format!("seed {seed}\n{:#}\n{received}\n{report:#?}", json!(turns));
    let faults: Vec<_> = report.faults.iter().filter(|fault| !is_excused(fault, &turns)).collect();
    assert!(faults.is_empty(), "{faults:?} {}", known());
    for tool in ["book", "slow_book"] {
        assert_eq!(runs.repeated(tool), [""; 0], "{}", known());
    }
    assert_eq!(agent.active_calls(), 1, "the call goes on: {}", known());
    client.send(ClientAction::Stop).await;
    assert!(client.received().ends_with("closed: Ended\n"));
}

#[tokio::test(start_paused = true)]
async fn random_events_are_answered_once_and_done_once() {
    for seed in 1..=25 {
        converse(seed).await;
    }
}
