//! The scenarios that come with the product, each played to its end by a client that bears everything.

use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_simulator::live::{LiveSimulator, Scenario};
use serde_json::{Value, json};

use super::client::{Client, End, PATH, setup, setup_with};

/// More connections than any of them needs.
const MAX_CONNECTIONS: usize = 6;

/// Plays one scenario.
struct Player {
    turns: Vec<Value>,
    simulator: LiveSimulator,
    handle: Option<String>,
    /// How many turns are complete.
    done: usize,
    connections: usize,
}

impl Player {
    async fn play(mut self) -> LiveSimulator {
        while self.done < self.turns.len() {
            self.connections += 1;
            assert!(
                self.connections <= MAX_CONNECTIONS,
                "{} of {} turns are done",
                self.done,
                self.turns.len()
            );
            let Ok(mut client) = Client::try_connect(&self.simulator, PATH).await else { continue };
            client.send(&self.handle.as_deref().map_or_else(setup, setup_with)).await;
            match self.listen(&mut client).await {
                // A handle that is not taken is of no more use.
                Err(End::Closed(1007, _)) => self.handle = None,
                Err(_) => {}
                Ok(()) => drop(client.disconnect().await),
            }
        }
        self.simulator
    }

    /// Does its part until all turns are complete.
    async fn listen(&mut self, client: &mut Client) -> Result<(), End> {
        let mut spoken = usize::MAX;
        loop {
            let bytes = client.receive_soon().await?;
            let Ok(frame) = serde_json::from_slice::<Value>(&bytes) else { continue };
            if let Some(handle) = frame.pointer("/sessionResumptionUpdate/newHandle") {
                self.handle = Some(handle.as_str().unwrap().to_owned());
            }
            let completes = frame.pointer("/serverContent/turnComplete").is_some();
            self.done += usize::from(completes);
            if self.done == self.turns.len() && self.handle.is_some() {
                return Ok(());
            }
            let is_interrupted = self.done > 0 && spoken == self.done;
            if frame.get("setupComplete").is_some() || (completes && !is_interrupted) {
                self.begin(client, frame.get("setupComplete").is_some()).await;
            }
            if frame.pointer("/serverContent/modelTurn").is_some()
                && spoken != self.done + 1
                && self.is_interrupted()
            {
                spoken = self.done + 1;
                client.speak(800).await;
            }
            answer(client, &frame).await;
        }
    }

    /// Whether the present turn wants to be interrupted.
    fn is_interrupted(&self) -> bool {
        let steps = self.turns[self.done]["steps"].as_array();
        steps.is_some_and(|steps| steps.iter().any(|step| step.get("expectInterruption").is_some()))
    }

    async fn begin(&self, client: &mut Client, is_new: bool) {
        let Some(turn) = self.turns.get(self.done) else { return };
        match turn["begins"].as_str().unwrap() {
            "start" | "answers" => {}
            _ if is_new && self.connections > 1 => {
                let turns = json!([{ "role": "user", "parts": [{ "text": "Where were we?" }] }]);
                client.send(&json!({ "clientContent": { "turns": turns, "turnComplete": true } })).await;
            }
            "text" => client.text("Hello").await,
            _ => client.speak(1_000).await,
        }
    }
}

async fn answer(client: &mut Client, frame: &Value) {
    for call in frame.pointer("/toolCall/functionCalls").and_then(Value::as_array).into_iter().flatten() {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut answer = json!({ "name": call["name"], "response": { "output": "done" } });
        if let Some(id) = call.get("id") {
            answer["id"] = id.clone();
        }
        client.send(&json!({ "toolResponse": { "functionResponses": [answer] } })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_example_scenario_plays_to_its_end_without_faults() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 12);
    for path in names {
        play(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_example_in_the_documentation_is_a_scenario() {
    let text = include_str!("../../../../../docs/SIMULATOR.md");
    let (_, text) = text.split_once("```json\n").unwrap();
    play("docs/SIMULATOR.md", text.split_once("```").unwrap().0).await;
}

async fn play(name: &str, text: &str) {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let value: Value = serde_json::from_str(text).unwrap();
    assert!(value["about"].as_str().is_some_and(|about| about.ends_with('.')), "{name}");
    let turns = value["turns"].as_array().unwrap().clone();
    let count = turns.len();
    let simulator = LiveSimulator::from_scenario(scenario);
    let player = Player { turns, simulator, handle: None, done: 0, connections: 0 };
    let simulator = tokio::time::timeout(Duration::from_secs(600), player.play()).await.unwrap();
    let report = simulator.report();
    assert_eq!(report.faults, Vec::<String>::new(), "{name}");
    assert!(report.turns + report.interruptions >= count, "{name}: {report:?}");
    assert!(simulator.is_done(), "{name}");
}
