//! What is kept of conversations for operators, and what is not.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::text::{Address, Feedback, Rating};
use quarterdeck_agents::transcripts::{
    AnswerOutcome, TranscriptPart, UnansweredReason, find_conversation, list_conversations, list_unanswered,
};
use quarterdeck_contracts::{ChatErrorKind, Scan, Store, Table};
use quarterdeck_runtime::erase_client;
use quarterdeck_store::{MemoryStore, SealedStore, SealingKey, SealingKeys};
use serde_json::json;

use crate::world::{ModelStep, World, ann, call};

const DAY: Duration = Duration::from_secs(24 * 3_600);
const PLANTED: &str = "Where does the walrus keep the spare rudder?";

/// A store behind which nothing of a conversation can be read, and what is behind it.
fn sealed() -> (Arc<MemoryStore>, Arc<dyn Store>) {
    let engine = Arc::new(MemoryStore::new());
    let key = SealingKey::from_base64(&"AQEB".repeat(11)[..43]).unwrap();
    let store = SealedStore::new(engine.clone(), SealingKeys::new(Some(key), Vec::new()));
    (engine, Arc::new(store))
}

async fn rows(store: &dyn Store) -> Vec<(Table, String, String)> {
    let mut rows = Vec::new();
    for table in Table::ALL {
        let found = store.scan(table, Scan::prefix("", 1_000)).await.unwrap();
        rows.extend(found.into_iter().map(|(key, row)| (table, key, row.value.to_string())));
    }
    rows
}

async fn kept_rows(world: &World) -> usize {
    world.orchestrator.save_all();
    let rows = rows(&*world.store).await;
    rows.iter().filter(|(_, key, _)| key.starts_with("o/") || key.starts_with("i/")).count()
}

async fn session_of(world: &World) -> String {
    world.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap().id
}

#[tokio::test]
async fn nothing_is_kept_for_operators_unless_it_is_switched_on() {
    let world = World::new();
    world.model.reply("In the hold.");
    world.send_and_collect(PLANTED).await;
    assert_eq!(kept_rows(&world).await, 0);
    assert_eq!(find_conversation(&*world.store, &session_of(&world).await, 0).await.unwrap(), None);
}

#[tokio::test]
async fn a_turn_is_kept_with_its_words_and_calls_and_no_engine_sees_them() {
    let (engine, store) = sealed();
    let world = World::keeping(&store, 7 * DAY);
    world.model.call_tools(vec![call("1", "look", json!({ "what": "rudder" }))]).reply("In the hold.");
    world.send_and_collect(PLANTED).await;
    let turns = find_conversation(&*world.store, &session_of(&world).await, 0).await.unwrap().unwrap();
    assert_eq!(turns.len(), 1);
    assert_eq!((turns[0].user.as_str(), turns[0].answer().as_str()), (PLANTED, "In the hold."));
    assert_eq!((turns[0].outcome, turns[0].turn), (AnswerOutcome::Answered, 1));
    assert!(matches!(&turns[0].parts[0], TranscriptPart::Call(call) if call.tool == "look" && call.ok));
    world.orchestrator.save_all();
    let seen = rows(&*engine).await;
    assert!(seen.len() > 4, "{seen:?}");
    for (table, key, value) in seen {
        for words in [PLANTED, "spare rudder", "In the hold", "\"rudder\""] {
            assert!(!value.contains(words), "{table:?}/{key} holds {words:?}: {value}");
        }
    }
}

#[tokio::test]
async fn questions_without_an_answer_are_listed_with_the_reason() {
    let (_, store) = sealed();
    let world = World::keeping(&store, 7 * DAY);
    world.model.reply("In Larvik.");
    world.send_and_collect("Where was she built?").await;
    world.clock.advance(Duration::from_secs(1));
    world.model.call_tools(vec![call("1", "look", json!({ "what": "nothing" }))]).reply("I found nothing.");
    world.send_and_collect("Who was the cat?").await;
    world.clock.advance(Duration::from_secs(1));
    world.model.call_tools(vec![call("2", "speak", json!({ "what": "x" }))]).reply("Not here.");
    world.send_and_collect("Say it aloud").await;
    world.clock.advance(Duration::from_secs(1));
    world.model.then(ModelStep::Fail("", ChatErrorKind::Unauthorised));
    world.send_and_collect("And now?").await;
    let reasons = async || {
        let found = list_unanswered(&*world.store, 0, 10).await.unwrap().questions;
        found.into_iter().map(|found| (found.question, found.reason, found.comment)).collect::<Vec<_>>()
    };
    let (error, refused) = (UnansweredReason::Error, UnansweredReason::Refused);
    let mut expected = vec![
        ("And now?".to_owned(), error, None),
        ("Say it aloud".to_owned(), refused, None),
        ("Who was the cat?".to_owned(), UnansweredReason::NoEvidence, None),
    ];
    assert_eq!(reasons().await, expected);
    let first = world.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap().turns[0].clone();
    let comment = Some("It was another town.".to_owned());
    let feedback = Feedback { rating: Rating::Down, comment: comment.clone() };
    assert!(
        world.agent.rate(&ann(), Address::Chat("chat"), &first.message_id, Some(feedback)).await.unwrap()
    );
    expected.push(("Where was she built?".to_owned(), UnansweredReason::ThumbsDown, comment));
    assert_eq!(reasons().await, expected);
    let listed = list_conversations(&*world.store, Some("ann"), 0, 10).await.unwrap().conversations;
    assert_eq!((listed[0].turns, listed[0].unanswered), (4, 4));
    assert_eq!(list_conversations(&*world.store, Some("ben"), 0, 10).await.unwrap().conversations, []);
}

#[tokio::test]
async fn erasing_a_client_leaves_none_of_its_words() {
    let (engine, store) = sealed();
    let world = World::keeping(&store, 7 * DAY);
    world.model.reply("In the hold.");
    world.send_and_collect(PLANTED).await;
    let session = session_of(&world).await;
    world.orchestrator.save_all();
    // Without the key, as an operator may have to.
    assert!(erase_client(&*engine, "ann").await.unwrap() > 3);
    let left = rows(&*store).await;
    assert!(!left.iter().any(|(_, key, value)| key.contains("ann") || value.contains("rudder")), "{left:?}");
    assert!(
        !left.iter().any(|(table, key, _)| *table == Table::History && key.contains(&session)),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_user_who_deletes_a_conversation_deletes_what_operators_keep_of_it() {
    let (_, store) = sealed();
    let world = World::keeping(&store, 7 * DAY);
    world.model.reply("In the hold.");
    world.send_and_collect(PLANTED).await;
    assert_eq!(kept_rows(&world).await, 2);
    assert!(world.agent.delete(&ann(), Address::Chat("chat")).await.unwrap());
    assert_eq!(kept_rows(&world).await, 0);
}

#[tokio::test]
async fn old_conversations_are_removed_and_not_shown_before_that() {
    let (_, store) = sealed();
    let world = World::keeping(&store, 7 * DAY);
    world.model.reply("In the hold.");
    world.send_and_collect(PLANTED).await;
    let session = session_of(&world).await;
    let since = |days: u32| world.orchestrator.now_ms() - (days * DAY).as_millis() as u64;
    world.clock.advance(6 * DAY);
    world.orchestrator.sweep().await.unwrap();
    assert!(find_conversation(&*store, &session, since(7)).await.unwrap().is_some());
    assert_eq!(
        find_conversation(&*store, &session, since(5)).await.unwrap(),
        None,
        "a shorter time counts at once"
    );
    world.clock.advance(2 * DAY);
    world.orchestrator.sweep().await.unwrap();
    assert_eq!(kept_rows(&world).await, 0);
}
