//! Ordinary conversation.

use expect_test::expect;
use quarterdeck_agents::text::{Address, Message, Refusal, Transcript};
use quarterdeck_contracts::{CallArguments, ChatMessage, ModelCall, ToolUse};
use serde_json::json;

use crate::world::{ModelStep, World, ann, call, event_lines, events, lines, message};

#[tokio::test]
async fn text_is_streamed_and_tool_calls_are_answered_between() {
    let world = World::new();
    world.model.then(ModelStep::ClientAction(
        vec!["Let me ", "look."],
        vec![call("1", "look", json!({ "what": "fram" }))],
    ));
    world.model.reply("It is a ship.");
    expect![[r#"
        started
        round
        text "Let me "
        text "look."
        call look {"what":"fram"}
        answer {"results":["fram"]}
        round
        text "It is a ship."
        finished Some(Answered)
    "#]]
    .assert_eq(&world.send_and_collect("What is the Fram?").await);
    let asked = world.model.last_request();
    assert_eq!(asked.messages.len(), 3, "the question, the call, its result");
    assert_eq!(asked.tool_use, ToolUse::Allowed);
}

#[tokio::test]
async fn the_server_keeps_the_conversation() {
    let world = World::new();
    world.model.reply("Hello.").reply("Still here.");
    world.send_and_collect("Hi").await;
    world.send_and_collect("Are you there?").await;
    let said: Vec<_> = world.model.last_request().messages.iter().map(said).collect();
    assert_eq!(said, ["user Hi", "model Hello.", "user Are you there?"]);
}

fn said(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User { text } => format!("user {text}"),
        ChatMessage::Model(message) => format!("model {}", message.text()),
        ChatMessage::Tools { results } => format!("{} results", results.len()),
    }
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_made_to_answer() {
    let world = World::new();
    for number in 0..10 {
        let id = number.to_string();
        world.model.call_tools(vec![call(&id, "look", json!({ "what": format!("thing {number}") }))]);
    }
    let lines = world.send_and_collect("Look at everything").await;
    let asked = world.model.requests.lock().unwrap();
    assert_eq!(asked.len(), 8, "eight rounds and no more");
    assert_eq!(asked[6].tool_use, ToolUse::Allowed);
    assert_eq!(asked[7].tool_use, ToolUse::Off);
    assert!(lines.contains("BUDGET_EXCEEDED"), "{lines}");
    assert!(
        lines.ends_with(
            "failed TRANSIENT \"The model gave no answer. Please ask again.\"\nfinished Some(Empty)\n"
        ),
        "{lines}"
    );
}

#[tokio::test]
async fn broken_arguments_are_an_error_for_the_model() {
    let world = World::new();
    let broken = ModelCall {
        id: None,
        name: "book".into(),
        arguments: CallArguments::Broken("{\"what\": \"a".into()),
    };
    world.model.call_tools(vec![broken]).reply("I made a mistake.");
    expect![[r#"
        started
        round
        broken call book "{\"what\": \"a"
        answer VALIDATION: The arguments are not a JSON object: EOF while parsing a string at line 1 column 11.
        round
        text "I made a mistake."
        finished Some(Answered)
    "#]]
    .assert_eq(&world.send_and_collect("Book it").await);
    assert_eq!(world.runs("book"), 0);
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_for_the_model() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "lok", json!({}))]).reply("Sorry.");
    let lines = world.send_and_collect("Look").await;
    assert!(lines.contains("NOT_FOUND"), "{lines}");
    assert!(lines.ends_with("finished Some(Answered)\n"));
}

#[tokio::test]
async fn the_same_message_twice_is_one_turn() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "book", json!({ "what": "a table" }))]).reply("Booked.");
    let twice = Message { id: Some("m1".into()), idempotency_key: None, text: "Book".into() };
    let ann = ann();
    let say = || world.agent.send_message(&ann, Address::Chat("chat"), twice.clone());
    let first = lines(&events(say().await.unwrap()).await);
    let again = event_lines(say().await.unwrap()).await;
    assert_eq!(first, again, "told again, not done again");
    assert_eq!(world.runs("book"), 1);
    assert_eq!(world.model.requests.lock().unwrap().len(), 2);
    let restarted = world.restarted();
    let after =
        event_lines(restarted.agent.send_message(&ann, Address::Chat("chat"), twice).await.unwrap()).await;
    assert_eq!(first, after, "also by another process");
}

#[tokio::test]
async fn the_same_message_while_it_is_answered_joins() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "slow_book", json!({ "what": "a table" }))]).reply("Booked.");
    let key = Message { id: None, idempotency_key: Some("k".into()), text: "Book".into() };
    let first = world.agent.send_message(&ann(), Address::Chat("chat"), key.clone()).await.unwrap();
    let second = world.agent.send_message(&ann(), Address::Chat("chat"), key).await.unwrap();
    let other = world.agent.send_message(&ann(), Address::Chat("chat"), message("Something else")).await;
    assert!(matches!(other, Err(Refusal::Busy)), "one turn at a time");
    let followed = world.agent.follow(&ann(), Address::Chat("chat")).await.unwrap().unwrap();
    let (first, second, third) = tokio::join!(event_lines(first), event_lines(second), event_lines(followed));
    assert_eq!(first, second);
    assert_eq!(first, third);
    assert_eq!(world.runs("slow_book"), 1);
    assert!(
        world.agent.follow(&ann(), Address::Chat("chat")).await.unwrap().is_none(),
        "nothing runs any more"
    );
}

#[tokio::test]
async fn an_answer_can_be_regenerated_and_what_was_done_stays_done() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "book", json!({ "what": "a table" }))]).reply("Booked.");
    world.send_and_collect("Book a table").await;
    world.model.reply("It is booked.");
    let again = world.agent.regenerate(&ann(), Address::Chat("chat")).await.unwrap();
    assert!(event_lines(again).await.contains("It is booked."));
    let said: Vec<_> = world.model.last_request().messages.iter().map(said).collect();
    assert_eq!(
        said,
        ["user [Note: book was done already, in an earlier attempt at this answer.]\n\nBook a table"],
        "the first answer is gone, what it did is not"
    );
    let refused = world.agent.regenerate(&ann(), Address::Chat("other")).await;
    assert!(matches!(refused, Err(Refusal::NothingToRegenerate)));
}

#[tokio::test]
async fn a_blocked_client_hears_the_farewell_and_reaches_no_model() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "block", json!({ "what": "them" }))]);
    let lines = world.send_and_collect("…").await;
    assert!(lines.ends_with("round\ntext \"Enough for today.\"\nfinished Some(Closed)\n"), "{lines}");
    let refused = world.send("Hello?").await.unwrap_err();
    assert_eq!(refused.block().unwrap().message, "Enough for today.");
    assert_eq!(world.model.requests.lock().unwrap().len(), 1);
    world.clock.advance(std::time::Duration::from_secs(61));
    world.model.reply("Welcome back.");
    assert!(
        world.send_and_collect("Hello?").await.contains("Welcome back."),
        "a block that has run out is paid for"
    );
}

#[tokio::test]
async fn a_request_that_is_sent_again_does_nothing_twice() {
    let world = World::new();
    let ann = ann();
    let ask = |is_retry: bool| {
        let transcript = Transcript {
            before: Vec::new(),
            text: "Book a table".into(),
            fingerprint: "the same".into(),
            is_retry,
        };
        world.agent.complete(&ann, Address::Chat("v1"), transcript)
    };
    world.model.call_tools(vec![call("1", "book", json!({ "what": "a table" }))]).reply("Booked.");
    let first = event_lines(ask(false).await.unwrap()).await;
    assert_eq!(event_lines(ask(true).await.unwrap()).await, first, "told again");
    assert_eq!((world.runs("book"), world.model.requests.lock().unwrap().len()), (1, 2));

    world
        .model
        .call_tools(vec![call("2", "book", json!({ "what": "a chair" }))])
        .then(ModelStep::Hang("It is "));
    let mut reader = ask(false).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("It is ") {
        seen += &lines(&reader.next().await.unwrap());
    }
    drop(reader);
    while world.agent.running_turns() > 0 {
        tokio::task::yield_now().await;
    }
    world.model.reply("It was booked before.");
    event_lines(ask(true).await.unwrap()).await;
    let said: Vec<_> = world.model.last_request().messages.iter().map(said).collect();
    let note = "[Note: book was done already, in an earlier attempt at this answer.]";
    assert_eq!(said, [format!("user {note}\n\nBook a table")]);
}
