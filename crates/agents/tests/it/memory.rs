//! What conversations take in memory, and that nothing is lost by it.

use std::time::Duration;

use quarterdeck_agents::text::{Address, Settings, StreamEvent, Transcript};
use quarterdeck_contracts::ChatMessage;
use serde_json::json;

use crate::world::{World, ann, call, event_lines, events, message};

/// What all conversations together may take.
const MAX_CONVERSATIONS: usize = 4 << 20;

fn long(bytes: usize) -> &'static str {
    "x".repeat(bytes).leak()
}

/// A turn lets its conversation go a moment after its last event.
async fn over(world: &World) {
    while world.agent.running_turns() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn the_oldest_conversations_are_evicted_when_all_take_too_much_memory() {
    let world = World::with(Settings { conversation_bytes: MAX_CONVERSATIONS, ..Settings::default() });
    *world.model.window.lock().unwrap() = Some(10_000_000);
    let answer = long(900_000);
    for number in 0..8 {
        world.model.reply(answer);
        let chat = format!("chat {number}");
        let reader = world.agent.send_message(&ann(), Address::Chat(&chat), message("Go on.")).await.unwrap();
        assert_eq!(events(reader).await.len(), 4 + answer.len().div_ceil(16 << 10) - 1);
        let taken = world.agent.memory_use().conversations;
        assert!(taken <= MAX_CONVERSATIONS + (1 << 20), "{taken}");
    }
    over(&world).await;
    let memory = world.agent.memory_use();
    assert!(
        memory.conversations > MAX_CONVERSATIONS / 2 && memory.conversations <= MAX_CONVERSATIONS,
        "{memory:?}"
    );
    assert_eq!(memory.answers, 0);
    // The first of them goes on where it was.
    world.model.reply("Well?");
    let reader = world.agent.send_message(&ann(), Address::Chat("chat 0"), message("And?")).await.unwrap();
    event_lines(reader).await;
    let asked = world.model.last_request().messages;
    assert!(matches!(&asked[1], ChatMessage::Model(said) if said.text() == answer), "{}", asked.len());
}

#[tokio::test]
async fn a_large_conversation_is_evicted_after_its_turn_and_loses_nothing() {
    let world = World::new();
    *world.model.window.lock().unwrap() = Some(10_000_000);
    let answer = long(2_000_000);
    world.model.reply(answer).reply("Yes.");
    world.send_and_collect("Go on.").await;
    over(&world).await;
    assert_eq!(world.agent.memory_use().conversations, 0);
    assert!(world.send_and_collect("Do you remember?").await.contains("Yes."));
    let asked = world.model.last_request().messages;
    assert!(matches!(&asked[1], ChatMessage::Model(said) if said.text() == answer));
}

#[tokio::test]
async fn an_open_confirmation_keeps_its_conversation_in_memory() {
    let world = World::new();
    world.model.then(crate::world::ModelStep::ClientAction(
        vec![long(2_000_000)],
        vec![call("1", "pay", json!({ "what": "a cake" }))],
    ));
    let told = events(world.send("Buy a cake").await.unwrap()).await;
    assert!(told.iter().any(|event| matches!(event, StreamEvent::ConfirmationRequest { .. })));
    over(&world).await;
    assert!(world.agent.memory_use().conversations > 2_000_000, "its token is nowhere else");
}

#[tokio::test]
async fn a_long_answer_that_is_asked_for_again_does_nothing_twice() {
    let world = World::new();
    let ann = ann();
    let ask = |is_retry: bool| {
        let (before, text) = (Vec::new(), "Book a table".to_owned());
        let transcript = Transcript { before, text, fingerprint: "the same".into(), is_retry };
        world.agent.complete(&ann, Address::Chat("v1"), transcript)
    };
    world.model.call_tools(vec![call("1", "book", json!({ "what": "a table" }))]).reply(long(2_000_000));
    events(ask(false).await.unwrap()).await;
    over(&world).await;
    let taken = world.agent.memory_use().conversations;
    assert!(taken < 100_000, "what was said is not kept: {taken}");
    world.model.reply("It was booked before.");
    event_lines(ask(true).await.unwrap()).await;
    let asked = world.model.last_request().messages;
    let Some(ChatMessage::User { text }) = asked.last() else { panic!("{asked:?}") };
    assert!(text.contains("book was done already"), "{text}");
    assert_eq!(world.runs("book"), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_cut_and_the_session_goes_on() {
    let world = World::new();
    world
        .model
        .then(crate::world::ModelStep::ClientAction(vec![long(3 << 20), long(3 << 20)], Vec::new()))
        .reply("Hello.");
    let told = events(world.send("Go on.").await.unwrap()).await;
    let words: usize =
        told.iter().map(|event| if let StreamEvent::Text(text) = event { text.len() } else { 0 }).sum();
    assert_eq!(words, 4 << 20);
    let last = told.last().unwrap();
    assert!(
        matches!(last, StreamEvent::Finished { ending: Some(quarterdeck_agents::turn::Ending::Cut), .. }),
        "{last:?}"
    );
    assert!(world.send_and_collect("And?").await.contains("Hello."));
}
