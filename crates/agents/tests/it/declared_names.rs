//! In which form each tool is declared, and names that a provider refuses: the model knows others, the tools do not.

use std::sync::Arc;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{self, Address, TextAgent};
use quarterdeck_agents::voice::{self, CallRequest, VoiceAgent};
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits,
};
use quarterdeck_contracts::{
    CallArguments, ChatMessage, ChatModel, ChatRequest, ChatStream, HandlerAnswer, LiveConnecting, LiveModel,
    LiveSetup, Outcome, Provider,
};
use quarterdeck_runtime::{Orchestrator, Registry, RuntimeParts};
use quarterdeck_testkit::new_store;
use serde_json::{Value, json};

use crate::voice::harness::{FakeClient, FakeLiveModel, run_until_idle, tool_calls, user_said};
use crate::world::{ScriptedModel, ann, call, event_lines, message, registry_of};

/// Answers with its arguments.
struct EchoHost;

impl HandlerHost for EchoHost {
    fn load(&self, _: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        Ok(Arc::new(Echo))
    }
}

struct Echo;

impl Handler for Echo {
    fn run(
        &self,
        args: Value,
        _: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        Box::pin(std::future::ready(Ok(HandlerAnswer::success(json!({ "got": args })))))
    }
}

/// `plain`, which every form can say, and `price`, whose names some providers refuse.
pub(crate) fn registry() -> Arc<Registry> {
    let modes = json!(["text", "voice"]);
    let price = json!({
        "allowedModes": modes,
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["цена"],
            "properties": {
                "цена": { "type": "integer", "minimum": 1, "description": "How much." },
                "items": {
                    "type": "array", "description": "What.",
                    "items": {
                        "type": "object", "additionalProperties": false,
                        "properties": { "цена": { "type": "integer", "description": "How much." } },
                    },
                },
            },
        },
    });
    Arc::new(registry_of(
        &[("plain", json!({ "allowedModes": modes })), ("price", price)],
        Arc::new(EchoHost),
    ))
}

fn orchestrator() -> Orchestrator {
    Orchestrator::new(RuntimeParts::new(new_store()))
}

/// A model on a provider that refuses names beyond ASCII.
struct OnAnthropic(Arc<ScriptedModel>);

impl ChatModel for OnAnthropic {
    fn declarations(&self) -> Provider {
        Provider::Anthropic
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn window(&self) -> usize {
        self.0.window()
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        self.0.ask(request)
    }
}

#[tokio::test]
async fn a_model_that_writes_uses_its_names_and_the_tool_gets_its_own() {
    let model = Arc::new(ScriptedModel::default());
    let agent = TextAgent::new(text::Parts {
        orchestrator: orchestrator(),
        registry: registry(),
        model: Arc::new(OnAnthropic(model.clone())),
        fallback: None,
        prompts: Prompts::default(),
        settings: text::Settings::default(),
    });
    model
        .call_tools(vec![call("1", "price", json!({ "name__1": 0, "items": [{ "name__1": "x" }] }))])
        .call_tools(vec![call("2", "price", json!({ "name__1": 5, "items": [{ "name__1": 6 }] }))])
        .reply("Done.");
    let lines =
        event_lines(agent.send_message(&ann(), Address::Chat("chat"), message("Go")).await.unwrap()).await;
    assert!(lines.contains(r#"call price {"цена":0,"items":[{"цена":"x"}]}"#), "{lines}");
    assert!(lines.contains(r#"answer {"got":{"цена":5,"items":[{"цена":6}]}}"#), "{lines}");

    let request = model.last_request();
    let declared = serde_json::to_string(&request.tools).unwrap();
    assert!(declared.contains(r#""required":["name__1"]"#), "{declared}");
    let asked: Vec<&Value> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Model(message) => Some(message),
            _ => None,
        })
        .flat_map(|message| message.calls())
        .filter_map(|call| match &call.arguments {
            CallArguments::Json(arguments) => Some(arguments),
            CallArguments::Broken(_) => None,
        })
        .collect();
    assert_eq!(
        *asked[0],
        json!({ "name__1": 0, "items": [{ "name__1": "x" }] }),
        "as the model made the call"
    );
    let error = request.messages.iter().find_map(|message| match message {
        ChatMessage::Tools { results } => match &results[0].response.outcome {
            Outcome::Failure(error) => Some(error),
            Outcome::Success(_) => None,
        },
        _ => None,
    });
    let error = serde_json::to_string(&error.expect("the first call is refused").for_model()).unwrap();
    assert!(error.contains(r#""path":"/items/0/name__1""#), "{error}");
    assert!(error.contains("name__1 must be") && !error.contains("цена"), "{error}");
}

/// A live model that takes these forms.
struct InForms(Arc<FakeLiveModel>, Option<Provider>);

impl LiveModel for InForms {
    fn declarations(&self) -> Provider {
        Provider::GeminiNative
    }

    fn fuller_declarations(&self) -> Option<Provider> {
        self.1
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn connect(&self, setup: LiveSetup) -> LiveConnecting {
        self.0.connect(setup)
    }
}

/// A call with a model that takes these forms.
async fn connect(fuller: Option<Provider>) -> (Arc<FakeLiveModel>, FakeClient, VoiceAgent) {
    let model = Arc::new(FakeLiveModel::default());
    let agent = VoiceAgent::new(voice::Parts {
        orchestrator: orchestrator(),
        registry: registry(),
        model: Arc::new(InForms(model.clone(), fuller)),
        engines: voice::SpeechEngines::default(),
        prompts: Prompts::default(),
        settings: voice::Settings::default(),
    });
    let (client, link) = FakeClient::new();
    agent.start_call(&ann(), CallRequest::default(), link).await;
    run_until_idle().await;
    client.received();
    (model, client, agent)
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_declared_in_the_native_form_unless_that_loses_something() {
    let (model, _client, _agent) = connect(Some(Provider::GeminiJsonSchema)).await;
    let tools = model.setups()[0].tools.clone();
    assert_eq!((&tools[0]["name"], &tools[0]["parameters"]["type"]), (&json!("plain"), &json!("OBJECT")));
    assert!(tools[0].get("parametersJsonSchema").is_none(), "{}", tools[0]);
    assert_eq!(tools[1]["parametersJsonSchema"]["required"], json!(["цена"]), "{}", tools[1]);
    assert!(tools[1].get("parameters").is_none(), "{}", tools[1]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_speaks_uses_its_names_where_it_takes_only_the_native_form() {
    let (model, client, _agent) = connect(None).await;
    let declared = model.setups()[0].tools[1]["parameters"].clone();
    assert_eq!(declared["required"], json!(["name__1"]), "{declared}");
    let calls = [
        ("call-0000001", "price", json!({ "name__1": 5, "items": [{ "name__1": 6 }] })),
        ("call-0000002", "price", json!({ "цена": 7 })),
    ];
    model.send_all([user_said("Go."), tool_calls(&calls)]).await;
    let received = client.received();
    assert!(received.contains(r#"price {"цена":5,"items":[{"цена":6}]}"#), "{received}");
    assert!(received.contains(r#"{"got":{"цена":5,"items":[{"цена":6}]}}"#), "{received}");
    assert!(received.contains(r#"{"got":{"цена":7}}"#), "a name from a guide is understood: {received}");
}
