//! What is remembered, how long, and for whom.

use std::time::Duration;

use quarterdeck_agents::text::{Address, Part, Refusal, User};
use quarterdeck_contracts::{ChatMessage, Scan, Table};
use quarterdeck_runtime::{Client, SessionError, erase_client};
use serde_json::json;

use crate::world::{World, ann, call, event_lines};

#[tokio::test]
async fn another_process_goes_on_where_the_last_one_stopped() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "look", json!({ "what": "fram" }))]).reply("A ship.");
    world.send_and_collect("What is the Fram?").await;
    let restarted = world.restarted();
    restarted.model.reply("1892.");
    restarted.send_and_collect("When was she built?").await;
    assert_eq!(restarted.model.last_request().messages.len(), 5);
}

#[tokio::test]
async fn a_conversation_goes_on_after_its_session_has_ended() {
    let world = World::new();
    world.model.reply("Hello.").reply("Still me.");
    world.send_and_collect("Hi").await;
    world.clock.advance(Duration::from_secs(3_600));
    world.send_and_collect("Back from lunch").await;
    assert_eq!(world.model.last_request().messages.len(), 3, "what was said before lunch is not forgotten");
}

#[tokio::test]
async fn the_oldest_turns_are_trimmed_whole_and_the_client_is_told() {
    let world = World::new();
    *world.model.window.lock().unwrap() = Some(4_000);
    for number in 0..12 {
        let id = number.to_string();
        world.model.call_tools(vec![call(&id, "look", json!({ "what": "x".repeat(300) }))]).reply("Seen.");
        let lines = world.send_and_collect(&format!("Look, number {number}: {}", "y".repeat(200))).await;
        if number == 11 {
            assert!(lines.contains("data history-trimmed {\"turns\":"), "{lines}");
        }
    }
    let messages = world.model.last_request().messages;
    assert!(messages.len() < 40, "{}", messages.len());
    assert!(matches!(messages[0], ChatMessage::User { .. }), "a turn is left out whole");
    let size: usize = messages.iter().map(|message| serde_json::to_string(message).unwrap().len()).sum();
    assert!(size / 4 < 4_000, "{size}");
}

#[tokio::test]
async fn a_conversation_is_shown_to_its_client_and_to_no_other() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "look", json!({ "what": "fram" }))]).reply("A ship.");
    world.send_and_collect("What is the Fram?").await;
    let view = world.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap();
    assert_eq!(view.turns.len(), 1);
    assert_eq!(view.turns[0].user_text, "What is the Fram?");
    let Part::Call { call, answer: Some(_), gates: Some(gates), .. } = &view.turns[0].parts[0] else {
        panic!("a call, its answer and its gates: {:?}", view.turns[0].parts);
    };
    assert_eq!(call.call.name, "look");
    assert_eq!(gates.explain().len(), 11);
    assert_eq!(view.turns[0].parts[1], Part::Text("A ship.".into()));
    let ben = User { client: Client::anonymous("ben"), ..ann() };
    for address in [Address::Chat("chat"), Address::Session(&view.id)] {
        assert_eq!(world.agent.view(&ben, address).await.unwrap(), None);
    }
    let stolen =
        world.agent.send_message(&ben, Address::Session(&view.id), crate::world::message("Hi")).await;
    assert!(matches!(stolen, Err(Refusal::Session(SessionError::NotFound))));
    world.model.reply("Who are you?");
    let own =
        world.agent.send_message(&ben, Address::Chat("chat"), crate::world::message("Hi")).await.unwrap();
    event_lines(own).await;
    assert_eq!(
        world.model.last_request().messages.len(),
        1,
        "the same name of another client is another chat"
    );
}

#[tokio::test]
async fn an_ended_session_is_over_and_an_erased_client_leaves_nothing() {
    let world = World::new();
    world.model.reply("Hello.");
    world.send_and_collect("Hi").await;
    let id = world.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap().id;
    assert!(world.agent.delete(&ann(), Address::Session(&id)).await.unwrap());
    assert!(!world.agent.delete(&ann(), Address::Session(&id)).await.unwrap());
    let ended = world.agent.send_message(&ann(), Address::Session(&id), crate::world::message("Hi")).await;
    assert!(matches!(ended, Err(Refusal::Session(SessionError::Ended))));
    erase_client(&*world.store, "ann").await.unwrap();
    let left = world.store.scan(Table::History, Scan::prefix("", 10)).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
