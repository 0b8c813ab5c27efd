//! The tools are changed during calls, as in development.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{
    Address, Parts as TextParts, Settings as TextSettings, StreamEvent, TextAgent,
};
use quarterdeck_agents::voice::{
    CallRequest, ClientLink, ClientMessage, CloseReason, Disconnect, Parts, ServerMessage, Settings,
    SpeechEngines, VoiceAgent,
};
use quarterdeck_compiler::{Inspectors, Options, Stamp, Tree, compile, write_artifact};
use quarterdeck_host_js::{HostConfig, JS_KIND, JsHost, JsInspector};
use quarterdeck_runtime::{Hosts, Registry, ReloadError};
use quarterdeck_testkit::tree;
use serde_json::{Value, json};

use super::log::Errors;
use super::tools::orchestrator;
use crate::voice::harness::{FakeLiveModel, ann, tool_calls};
use crate::world::{ScriptedModel, events, message};

/// A client that only listens, and keeps which version of the tools it was told.
struct Listener {
    versions: Arc<Mutex<Vec<(String, String)>>>,
}

impl ClientLink for Listener {
    fn poll_fill(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        Poll::Pending
    }

    fn next(&mut self) -> Option<ClientMessage<'_>> {
        None
    }

    fn send(&mut self, received: ServerMessage<'_>) {
        if let ServerMessage::Ready { session_id, tools_version, .. } = received {
            self.versions.lock().unwrap().push((session_id.into(), tools_version.into()));
        }
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        Poll::Ready(Ok(()))
    }

    fn queued_bytes(&self) -> usize {
        0
    }

    fn drop_audio(&mut self, _: usize) -> usize {
        0
    }

    fn ping(&mut self) {}

    fn close(self: Box<Self>, _: CloseReason) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// Writes a tool that answers with a word, and the artifact.
fn write(tools: &Path, word: &str) {
    let definition = json!({
        "toolId": "look", "version": "1.0.0", "description": format!("ClientAction {word}."), "category": "retrieval",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 5000,
        "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
    });
    let folder = tools.join("look");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.json"), definition.to_string()).unwrap();
    std::fs::write(folder.join("guide.md"), "# Look\n\nLooks. Use it when testing.\n").unwrap();
    let handler =
        format!("export function execute() {{ return {{ ok: true, data: {{ results: ['{word}'] }} }}; }}\n");
    std::fs::write(folder.join("handler.js"), handler).unwrap();
    let options = Options::new(
        Inspectors::default().with(JS_KIND, Arc::new(JsInspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let compilation = compile(&Tree::read(tools, &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    write_artifact(&artifact, &tools.join("tool_registry.json")).unwrap();
}

/// Handlers run on threads of their own, so the clock of these tests goes on.
async fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_call_keeps_the_tools_that_it_began_with_and_the_operator_is_told() {
    let errors = Errors::default();
    let _logged = tracing::subscriber::set_default(errors.clone());
    let files = tree("");
    write(files.path(), "old");
    let hosts = Hosts::default().with(JS_KIND, Arc::new(JsHost::new(HostConfig::default()).unwrap()));
    let artifact = files.path().join("tool_registry.json");
    let registry = Arc::new(Registry::load(&artifact, files.path(), hosts).unwrap());
    let (orchestrator, _) = orchestrator();
    let model = Arc::new(FakeLiveModel::default());
    let agent = VoiceAgent::new(Parts {
        orchestrator,
        registry: registry.clone(),
        model: model.clone(),
        engines: SpeechEngines::default(),
        prompts: Prompts::default(),
        settings: Settings::default(),
    });
    let versions = Arc::new(Mutex::new(Vec::new()));
    let line = || Box::new(Listener { versions: versions.clone() });
    agent.start_call(&ann(), CallRequest::default(), line()).await;
    wait_until(|| versions.lock().unwrap().len() == 1).await;

    write(files.path(), "new");
    let reloaded = registry.reload().unwrap().version().to_owned();
    let session = versions.lock().unwrap()[0].0.clone();
    let request = CallRequest {
        session_id: Some(session.as_str().into()),
        may_resume: true,
        pending_request: None,
        ..CallRequest::default()
    };
    agent.start_call(&ann(), request, line()).await;
    wait_until(|| versions.lock().unwrap().len() == 2).await;
    model.send(tool_calls(&[("1", "look", json!({}))])).await;
    let mut inputs = model.take_inputs();
    let looked = |inputs: &str| inputs.contains(r#"{"results":["old"]}"#);
    wait_until(|| {
        inputs.push_str(&model.take_inputs());
        looked(&inputs)
    })
    .await;
    assert!(looked(&inputs), "the handler that the session was pinned to runs: {inputs}");
    let seen = versions.lock().unwrap().clone();
    let before = &seen[0].1;
    assert_eq!(seen, [(session.clone(), before.clone()), (session, before.clone())], "it says what it has");
    assert_ne!(*before, reloaded);
    let errors = errors.lines();
    assert!(errors.len() == 1 && errors[0].contains(before) && errors[0].contains(&reloaded), "{errors:?}");
    // The model is told of the old ones too, when it is found again.
    model.drop_connection().await;
    wait_until(|| model.setups().len() == 2).await;
    let tools: Vec<Vec<Value>> = model.setups().iter().map(|setup| setup.tools.to_vec()).collect();
    assert!(tools.len() == 2 && tools[0] == tools[1], "{tools:?}");

    registry.lock();
    assert!(matches!(registry.reload(), Err(ReloadError::Locked)), "nothing changes in production");
}

#[tokio::test]
async fn where_the_folder_is_followed_the_next_message_has_the_new_tools_and_prompts_and_the_history() {
    let files = tree("");
    write(files.path(), "old");
    let hosts = Hosts::default().with(JS_KIND, Arc::new(JsHost::new(HostConfig::default()).unwrap()));
    let artifact = files.path().join("tool_registry.json");
    let registry = Arc::new(Registry::load(&artifact, files.path(), hosts).unwrap());
    registry.follow();
    let (orchestrator, _) = orchestrator();
    let model = Arc::new(ScriptedModel::default());
    let agent = TextAgent::new(TextParts {
        orchestrator,
        registry: registry.clone(),
        model: model.clone(),
        fallback: None,
        prompts: Prompts { core: "Be old.".into(), ..Prompts::default() },
        settings: TextSettings::default(),
    });
    let say = async |text: &str| {
        let reader = agent.send_message(&ann(), Address::Chat("chat"), message(text)).await.unwrap();
        let events = events(reader).await;
        let Some(StreamEvent::Started { session_id, .. }) = events.first() else { panic!("{events:?}") };
        session_id.to_string()
    };
    model.reply("One.");
    let session = say("first").await;
    assert!(model.last_request().system.starts_with("Be old."));

    write(files.path(), "new");
    registry.reload().unwrap();
    agent.set_prompts(Prompts { core: "Be new.".into(), ..Prompts::default() });
    model.reply("Two.");
    assert_eq!(say("second").await, session, "it is the same session");
    let request = model.last_request();
    let tools = request.tools.iter().map(Value::to_string).collect::<String>();
    assert!(request.system.starts_with("Be new."));
    assert!(tools.contains("ClientAction new.") && !tools.contains("ClientAction old."), "{tools}");
    let history = format!("{:?}", request.messages);
    assert!(history.contains("first") && history.contains("One."), "{history}");

    // Out of memory, it comes back with what is newest.
    write(files.path(), "newest");
    registry.reload().unwrap();
    agent.evict_superseded();
    model.reply("Three.");
    assert_eq!(say("third").await, session);
    let tools = model.last_request().tools.iter().map(Value::to_string).collect::<String>();
    assert!(tools.contains("ClientAction newest."), "{tools}");
}
