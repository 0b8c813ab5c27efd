//! A model that fails, and the one that is asked in its place.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{self, Address, StreamEvent, TextAgent};
use quarterdeck_contracts::{
    CallArguments, ChatErrorKind, ChatMessage, ChatModel, ChatRequest, ChatStream, Provider,
};
use quarterdeck_runtime::{Orchestrator, RuntimeParts};
use quarterdeck_testkit::new_store;
use serde_json::{Value, json};

use crate::declared_names;
use crate::world::{ModelStep, ScriptedModel, World, ann, call, event_lines, events, lines, message};

/// A model of another provider.
#[derive(Clone, Default)]
struct StandIn(Arc<ScriptedModel>);

impl ChatModel for StandIn {
    fn declarations(&self) -> Provider {
        Provider::Anthropic
    }

    fn name(&self) -> &str {
        "anthropic/stand-in"
    }

    fn window(&self) -> usize {
        self.0.window()
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        self.0.ask(request)
    }
}

fn asked(model: &ScriptedModel) -> usize {
    model.requests.lock().unwrap().len()
}

fn world() -> (World, StandIn) {
    let stand_in = StandIn::default();
    (World::with_fallback(Arc::new(stand_in.clone())), stand_in)
}

#[tokio::test]
async fn a_model_that_fails_before_its_first_word_is_replaced_once_and_that_is_said() {
    let (world, stand_in) = world();
    world.model.then(ModelStep::Fail("", ChatErrorKind::Unreachable)).reply("I am back.");
    stand_in.0.reply("I stand in.");
    let said = world.send_and_collect("Hello").await;
    assert_eq!(
        said,
        "started\nround\n\
         data model-fallback {\"model\":\"scripted/1\",\"fallback\":\"anthropic/stand-in\",\"reason\":\"unreachable\"}\n\
         text \"I stand in.\"\nfinished Some(Answered)\n"
    );
    assert_eq!((asked(&world.model), asked(&stand_in.0)), (1, 1));
    let trouble = world.agent.model_trouble().unwrap();
    assert_eq!((&*trouble.model, trouble.stand_in()), ("scripted/1", Some("anthropic/stand-in")));
    assert_eq!((trouble.failing.kind, trouble.failing.failures), (ChatErrorKind::Unreachable, 1));
    assert_eq!(trouble.failing.since_ms, world.orchestrator.now_ms());
    let models = world.orchestrator.metrics().json()["models"].take();
    assert_eq!(models["scripted/1"]["errors"], json!({ "unreachable": 1 }), "{models:#}");
    let counts = |model: &str| {
        let of = &models[model];
        (of["requests"].clone(), of["answered"].clone(), of["stoodIn"].clone())
    };
    assert_eq!(counts("scripted/1"), (json!(1), json!(0), json!(0)));
    assert_eq!(counts("anthropic/stand-in"), (json!(1), json!(1), json!(1)));
    assert_eq!(models["anthropic/stand-in"]["tokens"]["input"], 10);

    assert!(world.send_and_collect("And now?").await.contains("I am back."), "it is asked first again");
    assert_eq!(asked(&stand_in.0), 1);
    assert_eq!(world.agent.model_trouble(), None);
}

#[tokio::test]
async fn an_answer_that_has_begun_is_not_begun_again() {
    let (world, stand_in) = world();
    world.model.then(ModelStep::Fail("Well, ", ChatErrorKind::Cut));
    let said = world.send_and_collect("Hello").await;
    assert!(said.contains("text \"Well, \"\nfailed TRANSIENT"), "{said}");
    assert_eq!(asked(&stand_in.0), 0);
    assert_eq!(world.agent.model_trouble().unwrap().failing.kind, ChatErrorKind::Cut);
}

#[tokio::test]
async fn when_the_fallback_fails_too_each_was_asked_once_and_the_turn_ends() {
    let (world, stand_in) = world();
    world.model.then(ModelStep::Fail("", ChatErrorKind::Overloaded));
    stand_in.0.then(ModelStep::Fail("", ChatErrorKind::Unauthorised));
    let said = world.send_and_collect("Hello").await;
    assert_eq!(said.matches("data model-fallback").count(), 1, "{said}");
    assert!(said.contains("failed AUTH"), "{said}");
    assert_eq!((asked(&world.model), asked(&stand_in.0)), (1, 1));
    assert_eq!(world.agent.model_trouble().unwrap().stand_in(), None, "nothing answers");
}

#[tokio::test]
async fn what_is_wrong_with_the_conversation_is_not_passed_on() {
    for kind in [ChatErrorKind::Refused, ChatErrorKind::TooLong] {
        let (world, stand_in) = world();
        // What is too long is tried once more, with summaries instead of guides.
        world.model.then(ModelStep::Fail("", kind)).then(ModelStep::Fail("", kind));
        assert!(world.send_and_collect("Hello").await.contains("failed PERMANENT"));
        assert_eq!((asked(&stand_in.0), world.agent.model_trouble()), (0, None));
    }
}

#[tokio::test]
async fn calls_that_ran_before_the_model_failed_do_not_run_again() {
    let (world, stand_in) = world();
    world
        .model
        .call_tools(vec![call("1", "book", json!({ "what": "a table" }))])
        .then(ModelStep::Fail("", ChatErrorKind::Silent));
    stand_in.0.call_tools(vec![call("2", "look", json!({ "what": "it up" }))]).reply("It is booked.");
    let said = world.send_and_collect("Book a table").await;
    assert!(said.ends_with("text \"It is booked.\"\nfinished Some(Answered)\n"), "{said}");
    assert_eq!((world.runs("book"), world.runs("look")), (1, 1));
    assert_eq!(said.matches("data model-fallback").count(), 1, "it stays for the turn: {said}");
    assert_eq!((asked(&world.model), asked(&stand_in.0)), (2, 2));
    let heard = &stand_in.0.requests.lock().unwrap()[0].messages;
    assert!(
        matches!(&heard[..], [ChatMessage::User { .. }, ChatMessage::Model(_), ChatMessage::Tools { results }]
            if results.len() == 1),
        "it knows what was done: {heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_falls_silent_is_replaced_at_the_deadline_of_the_round() {
    let (world, stand_in) = world();
    world.model.then(ModelStep::Hang(""));
    stand_in.0.reply("I stand in.");
    let said = world.send_and_collect("Hello").await;
    assert!(said.contains("\"reason\":\"silent\"") && said.contains("I stand in."), "{said}");
}

#[tokio::test]
async fn a_model_that_keeps_failing_is_left_alone_for_a_while() {
    let (world, stand_in) = world();
    for _ in 0..3 {
        world.model.then(ModelStep::Fail("", ChatErrorKind::Overloaded));
        stand_in.0.reply("I stand in.");
        world.send_and_collect("Hello").await;
    }
    stand_in.0.reply("I stand in again.");
    let said = world.send_and_collect("Hello").await;
    assert!(said.contains("data model-fallback") && said.contains("I stand in again."), "{said}");
    assert_eq!((asked(&world.model), asked(&stand_in.0)), (3, 4));
    world.clock.advance(Duration::from_secs(20));
    world.model.reply("I am back.");
    assert!(world.send_and_collect("Hello").await.contains("I am back."));
}

#[tokio::test]
async fn without_a_fallback_a_failing_model_is_asked_every_time() {
    let world = World::new();
    for failures in 1..=5 {
        world.model.then(ModelStep::Fail("", ChatErrorKind::Unreachable));
        assert!(world.send_and_collect("Hello").await.contains("failed TRANSIENT"));
        assert_eq!(world.agent.model_trouble().unwrap().failing.failures, failures);
    }
    assert_eq!(asked(&world.model), 5);
}

#[tokio::test]
async fn a_request_that_the_user_has_left_is_cancelled_and_no_failure() {
    let world = World::new();
    world.model.then(ModelStep::Hang("Once upon a ")).reply("Hello again.");
    let mut reader = world.send("Tell me a story").await.unwrap();
    let mut seen = Vec::<StreamEvent>::new();
    while !lines(&seen).contains("Once") {
        seen.extend(reader.next().await.unwrap());
    }
    drop(reader);
    world.send_and_collect("Hi").await;
    let models = world.orchestrator.metrics().json()["models"].take();
    assert_eq!(models["scripted/1"]["cancelled"], 1, "{models:#}");
    assert_eq!((&models["scripted/1"]["errors"], world.agent.model_trouble()), (&json!({}), None));
}

fn arguments(request: &ChatRequest) -> Vec<Value> {
    let messages = request.messages.iter().filter_map(|message| match message {
        ChatMessage::Model(message) => Some(message),
        _ => None,
    });
    let arguments = messages.flat_map(|message| message.calls()).map(|call| match &call.arguments {
        CallArguments::Json(arguments) => arguments.clone(),
        CallArguments::Broken(text) => json!(text),
    });
    arguments.collect()
}

#[tokio::test]
async fn the_fallback_has_its_own_declarations_and_names_for_what_the_first_model_did() {
    let (first, stand_in) = (Arc::new(ScriptedModel::default()), StandIn::default());
    let agent = TextAgent::new(text::Parts {
        orchestrator: Orchestrator::new(RuntimeParts::new(new_store())),
        registry: declared_names::registry(),
        model: first.clone(),
        fallback: Some(Arc::new(stand_in.clone())),
        prompts: Prompts::default(),
        settings: text::Settings::default(),
    });
    first
        .call_tools(vec![call("1", "price", json!({ "цена": 5 }))])
        .then(ModelStep::Fail("", ChatErrorKind::RateLimited))
        .reply("I am back.");
    stand_in.0.call_tools(vec![call("2", "price", json!({ "name__1": 6 }))]).reply("Done.");
    let send =
        async |text: &str| agent.send_message(&ann(), Address::Chat("chat"), message(text)).await.unwrap();
    let said = event_lines(send("Go").await).await;
    assert!(said.contains("answer {\"got\":{\"цена\":6}}"), "the tool has its own names: {said}");
    let of_stand_in = stand_in.0.last_request();
    assert!(
        of_stand_in.tools.iter().all(|tool| tool.get("input_schema").is_some()),
        "{:?}",
        of_stand_in.tools
    );
    assert_eq!(arguments(&of_stand_in), [json!({ "name__1": 5 }), json!({ "name__1": 6 })]);
    assert!(events(send("Thanks").await).await.contains(&StreamEvent::Text("I am back.".into())));
    assert_eq!(arguments(&first.last_request()), [json!({ "цена": 5 }), json!({ "цена": 6 })]);
}
