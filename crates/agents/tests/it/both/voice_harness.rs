//! The voice agent over the client of Gemini Live, with the simulator behind it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::voice::{CallRequest, Parts, Settings, SpeechEngines, VoiceAgent};
use quarterdeck_simulator::live::LiveSimulator;
use serde_json::{Value, json};

use super::case::{Each, Harness, Id, Rounds, Runs, ScriptedCall, Step};
use super::tools::{orchestrator, registry};
use crate::voice::harness::{ClientAction, FakeClient, ann, run_until_idle};
use crate::voice::simulated::{model, scenario};
use crate::world::ManualClock;

pub(crate) struct VoiceCallHarness {
    client: FakeClient,
    /// What the client was told since the last look.
    received: String,
    simulator: LiveSimulator,
    clock: Arc<ManualClock>,
    runs: Runs,
    /// Of what the simulator has reported: words and calls that were looked at.
    seen: (usize, usize),
    _agent: VoiceAgent,
}

impl Harness for VoiceCallHarness {
    async fn begin(steps: &[Step]) -> Self {
        let turns: Vec<Value> = steps.iter().filter_map(turn).collect();
        let (model, simulator) = model(scenario(&turns.into()));
        let runs = Runs::default();
        let (orchestrator, clock) = orchestrator();
        let agent = VoiceAgent::new(Parts {
            orchestrator,
            registry: registry(&runs),
            model,
            engines: SpeechEngines::default(),
            prompts: Prompts::default(),
            settings: Settings::default(),
        });
        let (client, line) = FakeClient::new();
        agent.start_call(&ann(), CallRequest::default(), line).await;
        run_until_idle().await;
        client.received();
        Self { client, received: String::new(), simulator, clock, runs, seen: (0, 0), _agent: agent }
    }

    async fn turn(&mut self, text: &str) {
        self.client.send_text(text).await;
        self.wait().await;
    }

    async fn later(&mut self, time: Duration) {
        self.clock.advance(time);
    }

    async fn confirm(&mut self, approves: bool) {
        self.client.send(ClientAction::Confirm(self.client.token(), approves)).await;
        self.wait().await;
    }

    async fn seen(&mut self) -> Vec<String> {
        let report = self.simulator.report();
        assert_eq!(report.faults, [""; 0], "{report:#?}");
        let mut lines = Vec::new();
        lines.extend(report.heard[self.seen.0..].iter().map(|text| format!("model hears: {text}")));
        for call in &report.calls[self.seen.1..] {
            assert_eq!(call.answers.len(), 1, "every call is answered once: {call:?}");
            lines.push(format!("{} -> {}", call.name, call.answers[0]));
        }
        self.seen = (report.heard.len(), report.calls.len());
        lines.extend(std::mem::take(&mut self.received).lines().filter_map(shown));
        lines
    }

    fn runs(&self) -> &Runs {
        &self.runs
    }

    fn pick<T>(each: &Each<T>) -> &T {
        &each.spoken
    }
}

impl VoiceCallHarness {
    /// Until the model has said everything and the client has played it.
    async fn wait(&mut self) {
        tokio::time::sleep(Duration::from_secs(20)).await;
        self.received.push_str(&self.client.received());
        // A call that has ended takes nothing more.
        if !self.received.contains("closed") {
            self.client.send(ClientAction::Drained).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.received.push_str(&self.client.received());
        }
    }
}

/// What the simulator plays.
fn turn(step: &Step) -> Option<Value> {
    match step {
        Step::Turn(each) => Some(json!({ "begins": "text", "steps": steps(&each.spoken) })),
        Step::Confirm { is_noted: true, .. } => {
            Some(json!({ "begins": "content", "steps": [{ "say": "Noted." }] }))
        }
        Step::Confirm { is_noted: false, .. } | Step::Later(_) => None,
    }
}

fn steps(rounds: &Rounds) -> Vec<Value> {
    let mut steps = Vec::new();
    for calls in rounds {
        let calls: Vec<Value> = calls.iter().map(wire).collect();
        steps.extend([json!({ "call": calls }), json!({ "await": "answers" })]);
    }
    steps.push(json!({ "say": "Well." }));
    steps
}

fn wire(call: &ScriptedCall) -> Value {
    let args: Value = serde_json::from_str(&call.args).unwrap();
    let mut wire = json!({ "name": call.name, "args": args });
    match call.id {
        Id::Fresh => {}
        Id::Given(id) => wire["id"] = id.into(),
        Id::Missing => wire["id"] = Value::Null,
    }
    wire
}

/// What of the client's lines is not received in writing in the same way.
fn shown(line: &str) -> Option<String> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    match kind {
        "asked" => Some(format!("confirmation requested: {}", rest.split_once(' ').unwrap_or_default().1)),
        "error" => Some(format!("user: {}", rest.split(':').next().unwrap_or_default())),
        "end" => Some(format!("the call ends: {rest}")),
        "model:" => Some(format!("user reads: {rest}")),
        _ => None,
    }
}
