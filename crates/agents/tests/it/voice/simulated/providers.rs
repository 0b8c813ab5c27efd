//! Everyone who can be spoken with, played by a simulator of its protocol or by scripted engines.

use std::sync::Arc;

use quarterdeck_contracts::LiveModel;
use quarterdeck_simulator::live::{LiveSimulator, Scenario};
use quarterdeck_simulator::realtime::{Answer, RealtimeSimulator};
use quarterdeck_testkit::ScriptedTurns;
use quarterdeck_transports::live::{DialFuture, Dialer};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig, OpenAiRealtime, OpenAiRealtimeConfig};
use serde_json::{Value, json};
use url::Url;

use crate::voice::harness::{ScriptedEngines, VoiceHarness};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderKind {
    Gemini,
    /// Its simulator makes one call in a turn, and its connection does not announce its end.
    OpenAi,
    /// A chat model with engines. There is no connection to lose, so what ends in a scenario is a reply of the model.
    Pipeline,
}

pub(super) const PROVIDERS: [ProviderKind; 3] =
    [ProviderKind::Gemini, ProviderKind::OpenAi, ProviderKind::Pipeline];

/// A provider that plays a scenario, and what can be asked about it.
pub(super) struct Provider {
    pub(super) model: Arc<dyn LiveModel>,
    pub(super) simulation: Simulation,
}

pub(super) enum Simulation {
    Gemini(LiveSimulator),
    OpenAi(RealtimeSimulator),
    Pipeline(Arc<ScriptedEngines>),
}

impl Provider {
    /// Plays these turns.
    pub(super) fn new(kind: ProviderKind, turns: &Value) -> Self {
        match kind {
            ProviderKind::Gemini => {
                let (model, simulator) = gemini(scenario(turns));
                Self { model, simulation: Simulation::Gemini(simulator) }
            }
            ProviderKind::OpenAi => Self::openai(openai_answers(turns)),
            ProviderKind::Pipeline => Self::pipeline(ScriptedEngines::new(ScriptedTurns::new(turns))),
        }
    }

    pub(super) fn openai(simulator: RealtimeSimulator) -> Self {
        let config = OpenAiRealtimeConfig {
            base_url: "wss://simulator".into(),
            ..OpenAiRealtimeConfig::new("no key is needed")
        };
        let pipe = Arc::new(RealtimePipe(simulator.clone()));
        let model = OpenAiRealtime::new(config).unwrap().with_dialer(pipe);
        Self { model: Arc::new(model), simulation: Simulation::OpenAi(simulator) }
    }

    pub(super) fn pipeline(engines: Arc<ScriptedEngines>) -> Self {
        Self { model: engines.pipeline(), simulation: Simulation::Pipeline(engines) }
    }

    pub(super) fn harness(&self) -> VoiceHarness {
        VoiceHarness::with_model(self.model.clone())
    }

    /// Fails with everything that is known if a rule of the provider's protocol was broken. A pipeline has no protocol.
    pub(super) fn assert_clean(&self, received: &str, what: &str) {
        let (faults, report) = match &self.simulation {
            Simulation::Gemini(simulator) => {
                (simulator.report().faults, format!("{:#?}", simulator.report()))
            }
            Simulation::OpenAi(simulator) => {
                (simulator.report().faults, format!("{:#?}", simulator.report()))
            }
            Simulation::Pipeline(_) => (vec![], String::new()),
        };
        assert!(faults.is_empty(), "{what}: {faults:?}\n{received}\n{report}");
    }

    /// How often something was lost: a connection, or a reply of a pipeline's model.
    pub(super) fn losses(&self) -> usize {
        match &self.simulation {
            Simulation::Gemini(simulator) => simulator.report().connections - 1,
            Simulation::OpenAi(simulator) => simulator.report().connections - 1,
            Simulation::Pipeline(engines) => engines.breaks(),
        }
    }
}

struct Pipe(LiveSimulator);

impl Dialer for Pipe {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}

struct RealtimePipe(RealtimeSimulator);

impl Dialer for RealtimePipe {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}

/// Gemini Live as it plays a scenario.
pub(crate) fn gemini(scenario: Scenario) -> (Arc<dyn LiveModel>, LiveSimulator) {
    let simulator = LiveSimulator::from_scenario(scenario);
    let config =
        GeminiLiveConfig { base_url: "wss://simulator".into(), ..GeminiLiveConfig::new("no key is needed") };
    let model = GeminiLive::new(config).unwrap().with_dialer(Arc::new(Pipe(simulator.clone())));
    (Arc::new(model), simulator)
}

pub(crate) fn scenario(turns: &Value) -> Scenario {
    Scenario::parse(&json!({ "turns": turns }).to_string()).unwrap()
}

/// The turns as answers of the other simulator: by their keywords, or in their order where they have none. Of several calls
/// it makes the last.
pub(super) fn openai_answers(turns: &Value) -> RealtimeSimulator {
    let turns = turns.as_array().unwrap();
    if turns.iter().any(|turn| turn.get("containing").is_none()) {
        return RealtimeSimulator::new(turns.iter().map(openai_answer).collect::<Vec<_>>());
    }
    // The latest first: a text may repeat what was said before.
    let by_keyword =
        turns.iter().rev().map(|turn| (turn["containing"].as_str().unwrap(), openai_answer(turn)));
    // It forgets everything when its connection is lost, and is told what was said.
    let forgotten = ("go on from there", Answer::Say("Where was I?".into()));
    RealtimeSimulator::by_keyword(by_keyword.chain([forgotten]))
}

fn openai_answer(turn: &Value) -> Answer {
    let steps = turn["steps"].as_array().unwrap();
    let said: String = steps.iter().filter_map(|step| step["say"].as_str()).collect();
    match steps.iter().rev().find_map(|step| step.get("call")) {
        Some(call) => Answer::Call {
            name: call["name"].as_str().unwrap().into(),
            arguments: call["args"].clone(),
            then: said,
        },
        None => Answer::Say(said),
    }
}
