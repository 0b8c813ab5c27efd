//! Tools that report while they run, and those that go on in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{Address, Parts, Settings, TextAgent};
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_contracts::{ChatMessage, HandlerAnswer, Store};
use quarterdeck_runtime::{Orchestrator, RuntimeParts, TaskStatus};
use quarterdeck_testkit::new_store;
use serde_json::{Value, json};

use crate::voice::harness::{VoiceHarness, model_said, tool_calls, turn_complete, user_said};
use crate::world::{ScriptedModel, ann, call, event_lines, message, registry_of};

/// Runs every tool in three steps of a second, and reports each.
struct StepHost(Arc<Mutex<BTreeMap<String, u32>>>);

impl HandlerHost for StepHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        Ok(Arc::new(StepHandler { id: handler.metadata.tool_id.to_string(), runs: self.0.clone() }))
    }
}

struct StepHandler {
    id: String,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Handler for StepHandler {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        *self.runs.lock().unwrap().entry(self.id.clone()).or_default() += 1;
        Box::pin(async move {
            for step in 1..=3 {
                context.progress(&format!("step {step}"));
                context.emit(json!({ "steps": step }));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok(HandlerAnswer::success(json!({ "did": args["what"] })))
        })
    }
}

struct World {
    model: Arc<ScriptedModel>,
    agent: TextAgent,
    orchestrator: Orchestrator,
}

impl World {
    async fn on(store: Arc<dyn Store>) -> Self {
        let tools = [
            ("build", json!({ "sideEffects": "none", "category": "utility" })),
            ("build_later", json!({ "execution": "background", "idempotent": true })),
        ];
        let registry = Arc::new(registry_of(&tools, Arc::new(StepHost(Arc::default()))));
        let model = Arc::new(ScriptedModel::default());
        let orchestrator = Orchestrator::new(RuntimeParts::new(store));
        orchestrator.recover_tasks(&registry).await.unwrap();
        let agent = TextAgent::new(Parts {
            orchestrator: orchestrator.clone(),
            registry,
            model: model.clone(),
            fallback: None,
            prompts: Prompts::default(),
            settings: Settings::default(),
        });
        Self { model, agent, orchestrator }
    }

    async fn send(&self, text: &str) -> String {
        event_lines(self.agent.send_message(&ann(), Address::Chat("chat"), message(text)).await.unwrap())
            .await
    }

    async fn wait_for_tasks(&self) {
        while self
            .orchestrator
            .client_tasks("ann")
            .await
            .unwrap()
            .iter()
            .any(|task| task.status == TaskStatus::Running)
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The user's words as the model was given them last.
    fn last_user_text(&self) -> String {
        let request = self.model.last_request();
        let last = request.messages.into_iter().rev().find_map(|message| match message {
            ChatMessage::User { text } => Some(text),
            _ => None,
        });
        last.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_partial_results_are_streamed_before_the_answer() {
    let world = World::on(new_store()).await;
    world.model.call_tools(vec![call("1", "build", json!({ "what": "x" }))]).reply("Done.");
    let lines = world.send("Build it.").await;
    let at = |line: &str| lines.find(line).unwrap_or_else(|| panic!("{line} is not in {lines}"));
    assert!(at("progress \"step 1\"") < at("partial {\"steps\":1}"), "{lines}");
    assert!(at("partial {\"steps\":1}") < at("partial {\"steps\":3}"), "{lines}");
    assert!(at("partial {\"steps\":3}") < at("answer {\"did\":\"x\"}"), "{lines}");
    let asked = format!("{:?}", world.model.last_request().messages);
    assert!(!asked.contains("steps"), "the model gets the answer alone: {asked}");
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_background_task_is_a_note_and_an_event_in_the_next_turn_once() {
    let store: Arc<dyn Store> = new_store();
    let world = World::on(store.clone()).await;
    world.model.call_tools(vec![call("1", "build_later", json!({ "what": "x" }))]).reply("It has begun.");
    let lines = world.send("Build it.").await;
    assert!(lines.contains("\"status\":\"running\"") && lines.contains("text \"It has begun.\""), "{lines}");
    world.wait_for_tasks().await;

    world.model.reply("It is there.").reply("Nothing new.");
    let lines = world.send("Is it done?").await;
    assert_eq!(lines.matches("late build_later {\"did\":\"x\"}").count(), 1, "{lines}");
    let text = world.last_user_text();
    assert!(
        text.contains("build_later is done: {\"did\":\"x\"}]") && text.ends_with("Is it done?"),
        "{text}"
    );
    let lines = world.send("And now?").await;
    assert!(!lines.contains("late"), "{lines}");
    assert_eq!(world.last_user_text(), "And now?");

    let restarted = World::on(store).await;
    restarted.model.reply("Nothing new.");
    let lines = restarted.send("And after a restart?").await;
    assert!(!lines.contains("late"), "{lines}");
    assert_eq!(restarted.last_user_text(), "And after a restart?");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_left_does_not_stop_a_task() {
    let world = World::on(new_store()).await;
    world.model.call_tools(vec![call("1", "build_later", json!({ "what": "x" }))]).reply("It has begun.");
    let mut reader =
        world.agent.send_message(&ann(), Address::Chat("chat"), message("Build it.")).await.unwrap();
    reader.next().await;
    while world.orchestrator.client_tasks("ann").await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(reader);
    world.wait_for_tasks().await;
    let tasks = world.orchestrator.client_tasks("ann").await.unwrap();
    assert_eq!(tasks[0].status, TaskStatus::Done);
}

#[tokio::test(start_paused = true)]
async fn in_voice_the_outcome_of_a_task_reaches_client_and_model_once() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let build = tool_calls(&[("call-0000001", "slow_later", json!({ "what": "x" }))]);
    harness.model.send_all([user_said("Build it."), build]).await;
    let received = client.received();
    assert!(received.contains("result function-call-0000001 ") && received.contains("running"), "{received}");
    let inputs = harness.model.take_inputs();
    assert!(
        inputs.contains("result function-call-0000001") && inputs.contains("backgroundTaskId"),
        "{inputs}"
    );
    harness.model.send_all([model_said("It has begun."), turn_complete()]).await;
    client.received();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let received = client.received();
    assert_eq!(received.matches("result function-call-0000001 {\"did\":\"x\"}").count(), 1, "{received}");
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches("of slow_later is done").count(), 1, "{inputs}");
    harness.model.send_all([user_said("And?"), turn_complete()]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!harness.model.take_inputs().contains("slow_later"));
}
