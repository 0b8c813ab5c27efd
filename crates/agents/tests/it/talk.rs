//! Ordinary conversation.

use expect_test::expect;
use quarterdeck_agents::text::{Address, Message, Refusal, Transcript};
use quarterdeck_contracts::{CallArguments, ChatMessage, ModelCall, ToolUse};
use serde_json::json;

use crate::world::{Does, World, ann, call, events, lines, message, told};

#[tokio::test]
async fn words_go_out_as_they_come_and_calls_are_answered_between_them() {
    let world = World::new();
    world
        .model
        .will(Does::Says(vec!["Let me ", "look."], vec![call("1", "look", json!({ "what": "fram" }))]));
    world.model.says("It is a ship.");
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
    .assert_eq(&world.tells("What is the Fram?").await);
    let asked = world.model.last_asked();
    assert_eq!(asked.messages.len(), 3, "the question, the call, its result");
    assert_eq!(asked.tool_use, ToolUse::Allowed);
}

#[tokio::test]
async fn the_conversation_is_ours_and_goes_on() {
    let world = World::new();
    world.model.says("Hello.").says("Still here.");
    world.tells("Hi").await;
    world.tells("Are you there?").await;
    let said: Vec<_> = world.model.last_asked().messages.iter().map(said).collect();
    assert_eq!(said, ["person Hi", "model Hello.", "person Are you there?"]);
}

fn said(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User { text } => format!("person {text}"),
        ChatMessage::Model(message) => format!("model {}", message.text()),
        ChatMessage::Tools { results } => format!("{} results", results.len()),
    }
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_made_to_answer() {
    let world = World::new();
    for number in 0..10 {
        let id = number.to_string();
        world.model.calls(vec![call(&id, "look", json!({ "what": format!("thing {number}") }))]);
    }
    let told = world.tells("Look at everything").await;
    let asked = world.model.asked.lock().unwrap();
    assert_eq!(asked.len(), 8, "eight rounds and no more");
    assert_eq!(asked[6].tool_use, ToolUse::Allowed);
    assert_eq!(asked[7].tool_use, ToolUse::Off);
    assert!(told.contains("BUDGET_EXCEEDED"), "{told}");
    assert!(
        told.ends_with(
            "failed TRANSIENT \"The model gave no answer. Please ask again.\"\nfinished Some(Empty)\n"
        ),
        "{told}"
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
    world.model.calls(vec![broken]).says("I made a mistake.");
    expect![[r#"
        started
        round
        broken call book "{\"what\": \"a"
        answer VALIDATION: The arguments are not a JSON object: EOF while parsing a string at line 1 column 11.
        round
        text "I made a mistake."
        finished Some(Answered)
    "#]]
    .assert_eq(&world.tells("Book it").await);
    assert_eq!(world.runs("book"), 0);
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_for_the_model() {
    let world = World::new();
    world.model.calls(vec![call("1", "lok", json!({}))]).says("Sorry.");
    let told = world.tells("Look").await;
    assert!(told.contains("NOT_FOUND"), "{told}");
    assert!(told.ends_with("finished Some(Answered)\n"));
}

#[tokio::test]
async fn the_same_message_twice_is_one_turn() {
    let world = World::new();
    world.model.calls(vec![call("1", "book", json!({ "what": "a table" }))]).says("Booked.");
    let twice = Message { id: Some("m1".into()), idempotency_key: None, text: "Book".into() };
    let ann = ann();
    let say = || world.agent.send_message(&ann, Address::Chat("chat"), twice.clone());
    let first = lines(&events(say().await.unwrap()).await);
    let again = told(say().await.unwrap()).await;
    assert_eq!(first, again, "told again, not done again");
    assert_eq!(world.runs("book"), 1);
    assert_eq!(world.model.asked.lock().unwrap().len(), 2);
    let restarted = world.restarted();
    let after = told(restarted.agent.send_message(&ann, Address::Chat("chat"), twice).await.unwrap()).await;
    assert_eq!(first, after, "also by another process");
}

#[tokio::test]
async fn the_same_message_while_it_is_answered_joins() {
    let world = World::new();
    world.model.calls(vec![call("1", "slow_book", json!({ "what": "a table" }))]).says("Booked.");
    let key = Message { id: None, idempotency_key: Some("k".into()), text: "Book".into() };
    let first = world.agent.send_message(&ann(), Address::Chat("chat"), key.clone()).await.unwrap();
    let second = world.agent.send_message(&ann(), Address::Chat("chat"), key).await.unwrap();
    let other = world.agent.send_message(&ann(), Address::Chat("chat"), message("Something else")).await;
    assert!(matches!(other, Err(Refusal::Busy)), "one turn at a time");
    let followed = world.agent.follow(&ann(), Address::Chat("chat")).await.unwrap().unwrap();
    let (first, second, third) = tokio::join!(told(first), told(second), told(followed));
    assert_eq!(first, second);
    assert_eq!(first, third);
    assert_eq!(world.runs("slow_book"), 1);
    assert!(
        world.agent.follow(&ann(), Address::Chat("chat")).await.unwrap().is_none(),
        "nothing runs any more"
    );
}

#[tokio::test]
async fn an_answer_can_be_made_anew_and_what_was_done_stays_done() {
    let world = World::new();
    world.model.calls(vec![call("1", "book", json!({ "what": "a table" }))]).says("Booked.");
    world.tells("Book a table").await;
    world.model.says("It is booked.");
    let again = world.agent.regenerate(&ann(), Address::Chat("chat")).await.unwrap();
    assert!(told(again).await.contains("It is booked."));
    let said: Vec<_> = world.model.last_asked().messages.iter().map(said).collect();
    assert_eq!(
        said,
        ["person [Note: book was done already, in an earlier attempt at this answer.]\n\nBook a table"],
        "the first answer is gone, what it did is not"
    );
    let nobody = world.agent.regenerate(&ann(), Address::Chat("other")).await;
    assert!(matches!(nobody, Err(Refusal::NothingToRegenerate)));
}

#[tokio::test]
async fn a_blocked_client_hears_the_farewell_and_reaches_no_model() {
    let world = World::new();
    world.model.calls(vec![call("1", "block", json!({ "what": "them" }))]);
    let told = world.tells("…").await;
    assert!(told.ends_with("round\ntext \"Enough for today.\"\nfinished Some(Closed)\n"), "{told}");
    let refused = world.say("Hello?").await.unwrap_err();
    assert_eq!(refused.block().unwrap().message, "Enough for today.");
    assert_eq!(world.model.asked.lock().unwrap().len(), 1);
    world.clock.advance(std::time::Duration::from_secs(61));
    world.model.says("Welcome back.");
    assert!(world.tells("Hello?").await.contains("Welcome back."), "a block that has run out is paid for");
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
    world.model.calls(vec![call("1", "book", json!({ "what": "a table" }))]).says("Booked.");
    let first = told(ask(false).await.unwrap()).await;
    assert_eq!(told(ask(true).await.unwrap()).await, first, "told again");
    assert_eq!((world.runs("book"), world.model.asked.lock().unwrap().len()), (1, 2));

    world.model.calls(vec![call("2", "book", json!({ "what": "a chair" }))]).will(Does::Hangs("It is "));
    let mut reader = ask(false).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("It is ") {
        seen += &lines(&reader.next().await.unwrap());
    }
    drop(reader);
    while world.agent.running_turns() > 0 {
        tokio::task::yield_now().await;
    }
    world.model.says("It was booked before.");
    told(ask(true).await.unwrap()).await;
    let said: Vec<_> = world.model.last_asked().messages.iter().map(said).collect();
    let note = "[Note: book was done already, in an earlier attempt at this answer.]";
    assert_eq!(said, [format!("person {note}\n\nBook a table")]);
}
