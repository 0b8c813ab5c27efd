//! A model and a client that do what a test wants, and the voice agent between them. The clock stands still.

mod fake_client;
mod fake_model;
mod player;
mod scripted_engines;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quarterdeck_agents::voice::{CallRequest, Parts, Settings, SpeechEngines, VoiceAgent};
use quarterdeck_agents::{Prompts, Situation, text::User};
use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityCall, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_contracts::{
    Audio, CallArguments, Capability, Commit, HandlerAnswer, LiveEvent, LiveModel, ModelCall, Speaker, Store,
    Table, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::{Client, NodeParts, Orchestrator, Policy, Registry, SpokenConfirmation};
use quarterdeck_testkit::new_store;
use serde_json::{Value, json};

use crate::world::{ManualClock, node, registry_of};
pub(crate) use fake_client::{ClientAction, FakeClient};
pub(crate) use fake_model::{FakeLiveModel, outcome};
pub(crate) use scripted_engines::{Fault, FaultKind, ScriptedEngines, Stage};

/// Everything that a test looks at.
pub(crate) struct VoiceHarness {
    pub(crate) model: Arc<FakeLiveModel>,
    pub(crate) agent: VoiceAgent,
    pub(crate) orchestrator: Orchestrator,
    registry: Arc<Registry>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl VoiceHarness {
    pub(crate) fn new() -> Self {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800);
        Self::on(new_store(), ManualClock::at(start), Arc::default(), None)
    }

    /// One of several nodes on a store, with the effects of all.
    pub(crate) async fn node(&self, name: &str) -> Self {
        let (store, runs) = (self.store.clone(), self.runs.clone());
        let clock = ManualClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800));
        let harness = Self::on(store, clock, runs, Some(node(name)));
        harness.orchestrator.renew_node().await.unwrap();
        harness
    }

    /// Another process on the same store.
    pub(crate) fn restarted(&self) -> Self {
        Self::on(self.store.clone(), self.clock.clone(), self.runs.clone(), None)
    }

    /// With room for so many calls.
    pub(crate) fn with_max_calls(calls: usize) -> Self {
        let mut harness = Self::new();
        let settings = Settings { calls, ..Settings::default() };
        harness.agent = agent(&harness.orchestrator, &harness.registry, harness.model.clone(), settings);
        harness
    }

    /// With words for the time that a slow tool takes.
    pub(crate) fn with_filler(filler: &str) -> Self {
        let mut harness = Self::new();
        let settings = Settings { filler: Some(filler.into()), ..Settings::default() };
        harness.agent = agent(&harness.orchestrator, &harness.registry, harness.model.clone(), settings);
        harness
    }

    /// With another model than the actor.
    pub(crate) fn with_model(model: Arc<dyn LiveModel>) -> Self {
        let mut harness = Self::new();
        harness.agent = harness.agent_of(model);
        harness
    }

    /// In which questions are asked by voice with these engines.
    pub(crate) fn asking(engines: SpeechEngines) -> Self {
        let mut harness = Self::new();
        let spoken_confirmation = SpokenConfirmation { is_allowed: true, ..SpokenConfirmation::default() };
        harness.orchestrator = Orchestrator::new(quarterdeck_runtime::RuntimeParts {
            clock: harness.clock.clone(),
            policy: Policy { spoken_confirmation, ..Policy::default() },
            ..quarterdeck_runtime::RuntimeParts::new(harness.store.clone())
        });
        harness.agent = VoiceAgent::new(Parts {
            orchestrator: harness.orchestrator.clone(),
            registry: harness.registry.clone(),
            model: harness.model.clone(),
            engines,
            prompts: Prompts::default(),
            settings: Settings::default(),
        });
        harness
    }

    /// In which conversations are kept for operators.
    pub(crate) fn keeping() -> Self {
        let mut harness = Self::new();
        let transcript_retention = Some(Duration::from_secs(7 * 24 * 3_600));
        harness.orchestrator = Orchestrator::new(quarterdeck_runtime::RuntimeParts {
            clock: harness.clock.clone(),
            policy: Policy { transcript_retention, ..Policy::default() },
            ..quarterdeck_runtime::RuntimeParts::new(harness.store.clone())
        });
        harness.agent = harness.agent_of(harness.model.clone());
        harness
    }

    fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        runs: Arc<Mutex<BTreeMap<String, u32>>>,
        node: Option<NodeParts>,
    ) -> Self {
        let model = Arc::new(FakeLiveModel::default());
        let parts = quarterdeck_runtime::RuntimeParts {
            clock: clock.clone(),
            node,
            ..quarterdeck_runtime::RuntimeParts::new(store.clone())
        };
        let orchestrator = Orchestrator::new(parts);
        let registry = Arc::new(registry_of(&tools(), Arc::new(Host { runs: runs.clone() })));
        let agent = agent(&orchestrator, &registry, model.clone(), Settings::default());
        Self { model, agent, orchestrator, registry, store, clock, runs }
    }

    /// Another process on the same store, spoken with by a model that has lived on.
    pub(crate) fn restarted_with(&self, model: Arc<dyn LiveModel>) -> Self {
        let mut harness = self.restarted();
        harness.agent = harness.agent_of(model);
        harness
    }

    fn agent_of(&self, model: Arc<dyn LiveModel>) -> VoiceAgent {
        agent(&self.orchestrator, &self.registry, model, Settings::default())
    }

    pub(crate) fn runs(&self, tool: &str) -> u32 {
        self.runs.lock().unwrap().get(tool).copied().unwrap_or(0)
    }

    pub(crate) async fn call(&self, request: CallRequest) -> FakeClient {
        self.call_as("ann", request).await
    }

    pub(crate) async fn call_as(&self, client: &str, request: CallRequest) -> FakeClient {
        let (page, link) = FakeClient::new();
        let user = User { client: Client::anonymous(client), ..ann() };
        self.agent.start_call(&user, request, link).await;
        run_until_idle().await;
        page
    }

    /// A call that stands, with nothing said in it.
    pub(crate) async fn connect_client(&self) -> FakeClient {
        let client = self.call(CallRequest::default()).await;
        assert_eq!(client.received(), "ready fake/1 resumed=false\n");
        client
    }

    /// Ann is blocked for a minute.
    pub(crate) async fn block(&self) {
        let until_ms = self.orchestrator.now_ms() + 60_000;
        let block = json!({ "clientId": "ann", "untilMs": until_ms, "message": "Enough for today." });
        self.store.commit(Commit::default().put(Table::Blocks, "ann", block)).await.unwrap();
    }

    /// What the model has said by the journal of Ann's call, an answer each.
    pub(crate) async fn journal_answers(&self) -> Vec<String> {
        let id = self.session().await.session_id.unwrap();
        let row = self.store.get(Table::History, &format!("s/{id}/voice")).await.unwrap().unwrap();
        let turns = row.value["turns"].as_array().unwrap().clone();
        let answers = turns.into_iter().filter(|turn| turn["by"] == json!(Speaker::Model));
        answers.map(|turn| turn["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The session of Ann's call.
    pub(crate) async fn session(&self) -> CallRequest {
        let sessions = quarterdeck_runtime::list_sessions(&*self.store).await.unwrap();
        let id = sessions.first().expect("a session").id.as_str().into();
        CallRequest { session_id: Some(id), may_resume: true, ..CallRequest::default() }
    }
}

fn agent(
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    model: Arc<dyn LiveModel>,
    settings: Settings,
) -> VoiceAgent {
    VoiceAgent::new(Parts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model,
        engines: SpeechEngines::default(),
        prompts: Prompts::default(),
        settings,
    })
}

pub(crate) fn ann() -> User {
    User { client: Client::anonymous("ann"), situation: Situation::default() }
}

/// Lets everything happen that does not wait for the clock.
pub(crate) async fn run_until_idle() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub(crate) fn user_said(text: &'static str) -> LiveEvent<'static> {
    LiveEvent::InputTranscript(TranscriptPiece { text: text.into(), stage: TranscriptStage::Final })
}

pub(crate) fn model_said(text: &'static str) -> LiveEvent<'static> {
    LiveEvent::OutputTranscript(TranscriptPiece { text: text.into(), stage: TranscriptStage::Segment })
}

pub(crate) fn audio(bytes: usize) -> LiveEvent<'static> {
    LiveEvent::Audio(Audio::Pcm(vec![0; bytes].into()))
}

pub(crate) fn turn_complete() -> LiveEvent<'static> {
    LiveEvent::TurnComplete { more_follows: false }
}

pub(crate) fn tool_calls(calls: &[(&str, &str, Value)]) -> LiveEvent<'static> {
    let call = |(id, name, args): &(&str, &str, Value)| ModelCall {
        id: (!id.is_empty()).then(|| format!("function-{id}")),
        name: (*name).into(),
        arguments: CallArguments::Json(args.clone()),
    };
    LiveEvent::Calls(calls.iter().map(call).collect())
}

fn tools() -> Vec<(&'static str, Value)> {
    let reads = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let ends = json!({ "control": true, "sideEffects": "none" });
    // They take as many milliseconds as they are asked for.
    let paced = |mut more: Value| {
        more["category"] = json!("utility");
        more["sideEffects"] = json!("none");
        more["latencyBudgetMs"] = json!(500);
        more
    };
    let both = |mut more: Value| {
        more["allowedModes"] = json!(["text", "voice"]);
        more
    };
    vec![
        ("look", both(reads.clone())),
        ("slow_look", both(reads)),
        ("book", both(json!({}))),
        ("slow_book", both(json!({}))),
        ("slow_later", both(json!({ "execution": "background" }))),
        ("paced", both(paced(json!({ "timeoutMs": 60_000 })))),
        ("paced_auto", both(paced(json!({ "execution": "auto", "backgroundAfterMs": 2_000 })))),
        ("pay", both(json!({ "requiresConfirmation": true }))),
        ("leave", both(ends.clone())),
        ("bid_farewell", both(ends.clone())),
        ("hide", both(ends)),
        ("shut_out", both(json!({ "control": true, "capabilities": ["moderation"] }))),
        ("write_only", json!({ "allowedModes": ["text"], "sideEffects": "none" })),
    ]
}

struct Host {
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

struct Tool {
    id: String,
    runs: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl HandlerHost for Host {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let id = handler.metadata.tool_id.to_string();
        Ok(Arc::new(Tool { id, runs: self.runs.clone() }))
    }
}

impl Handler for Tool {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        *self.runs.lock().unwrap().entry(self.id.clone()).or_default() += 1;
        let id = self.id.clone();
        Box::pin(async move {
            if id.starts_with("slow") {
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            if id.starts_with("paced") {
                let ms = args["what"].as_str().and_then(|ms| ms.parse().ok()).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            let end = |after: &str| json!({ "type": "END_VOICE_SESSION", "after": after });
            let intents = match id.as_str() {
                "leave" => json!([end("current_turn")]),
                "shut_out" => {
                    let args = vec![json!(300), json!("Let us take a break.")];
                    let capability = Capability::MODERATION;
                    context
                        .request(CapabilityCall { capability, method: "block".into(), args })
                        .await
                        .unwrap();
                    json!([end("farewell_spoken"), { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                "bid_farewell" => {
                    json!([end("farewell_spoken"), { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                "hide" => {
                    json!([{ "type": "SUPPRESS_TRANSCRIPT", "value": true }, { "type": "SUPPRESS_AUDIO", "value": true }])
                }
                _ => json!([]),
            };
            let data = match id.as_str() {
                "leave" => json!({ "reason": "done", "finalMessage": "Bye.", "textResponse": "We talked." }),
                "look" | "slow_look" => json!({ "results": [args["what"]] }),
                _ => json!({ "did": args["what"] }),
            };
            Ok(HandlerAnswer::parse(json!({ "ok": true, "data": data, "intents": intents })).unwrap())
        })
    }
}
