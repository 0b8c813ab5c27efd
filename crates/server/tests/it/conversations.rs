//! The list of a client's conversations, deleting one, and what its user thinks of answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use quarterdeck_contracts::{Scan, Store, Table};
use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::World;

async fn say(world: &World, cookie: &str, chat: &str, text: &str) -> Answer {
    let answer = world.post("/api/chat", &json!({ "id": chat, "message": text })).with("cookie", cookie);
    answer.send().await
}

async fn list(world: &World, cookie: &str, query: &str) -> Value {
    world.get(&format!("/api/sessions{query}")).with("cookie", cookie).send().await.json()
}

fn ids(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

async fn rate(world: &World, cookie: &str, chat: &str, message: &str, rating: &str) -> Answer {
    let body = json!({ "sessionId": chat, "messageId": message, "rating": rating });
    world.post("/api/feedback", &body).with("cookie", cookie).send().await
}

#[tokio::test]
async fn conversations_are_listed_with_titles_the_latest_first_and_in_pages() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    for chat in ["one", "two", "three"] {
        say(&world, &cookie, chat, &format!("Tell me\nabout {chat}")).await;
        world.advance_clock(Duration::from_secs(1));
    }
    say(&world, &cookie, "one", "More of it").await;
    let all = list(&world, &cookie, "").await;
    assert_eq!((ids(&all), &all["next"]), (vec!["one", "three", "two"], &json!(null)));
    assert_eq!(all["sessions"][0]["title"], "Tell me about one", "the first message names it");
    assert!(all["sessions"][0]["createdMs"].as_u64() < all["sessions"][0]["updatedMs"].as_u64());

    let first = list(&world, &cookie, "?limit=2").await;
    assert_eq!(ids(&first), ["one", "three"]);
    let rest = list(&world, &cookie, &format!("?limit=2&after={}", first["next"].as_str().unwrap())).await;
    assert_eq!((ids(&rest), &rest["next"]), (vec!["two"], &json!(null)));
    for query in ["?limit=0", "?limit=101", "?after=x", "?after=1.a%2Fb", "?other=1"] {
        let refused = world.get(&format!("/api/sessions{query}")).with("cookie", &cookie).send().await;
        assert_eq!(refused.refusal().0, 400, "{query}");
    }
}

#[tokio::test]
async fn a_conversation_without_a_name_of_the_clients_is_opened_and_continued_by_its_session() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    world.post("/api/chat", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    let listed = list(&world, &cookie, "").await;
    let id = ids(&listed)[0].to_owned();
    assert_eq!(listed["sessions"][0]["sessionId"], json!(id));
    say(&world, &cookie, &id, "go on").await;
    let kept = world.get(&format!("/api/sessions/{id}")).with("cookie", &cookie).send().await.json();
    assert_eq!(kept["messages"].as_array().unwrap().len(), 4);
    assert_eq!(ids(&list(&world, &cookie, "").await), [id]);
}

#[tokio::test]
async fn a_conversation_whose_session_has_ended_is_shown_and_goes_on_as_the_same_one() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let said = say(&world, &cookie, "chat", "first").await;
    let message = said.event("start")["messageId"].as_str().unwrap().to_owned();
    for text in ["second", "third"] {
        world.advance_clock(Duration::from_secs(3_600));
        let kept = world.get("/api/sessions/chat").with("cookie", &cookie).send().await.json();
        assert_eq!(kept["messages"][0]["parts"][0]["text"], "first", "shown although its session has ended");
        assert_eq!(rate(&world, &cookie, "chat", &message, "up").await.status, 200);
        say(&world, &cookie, "chat", text).await;
    }
    let kept = world.get("/api/sessions/chat").with("cookie", &cookie).send().await.json();
    let asked = kept["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let asked: Vec<_> = asked.map(|message| message["parts"][0]["text"].clone()).collect();
    assert_eq!(asked, ["first", "second", "third"]);
    assert_eq!(kept["messages"][1]["metadata"]["feedback"], json!({ "rating": "up" }));
    let listed = list(&world, &cookie, "").await;
    assert_eq!((ids(&listed), &listed["sessions"][0]["title"]), (vec!["chat"], &json!("first")));

    let deleted = world.ask("DELETE", "/api/sessions/chat").with("cookie", &cookie).send().await;
    assert_eq!(deleted.status, 204);
    let left = world.store.scan(Table::History, Scan::prefix("", 10)).await.unwrap();
    assert!(left.is_empty(), "of all its sessions: {left:?}");
}

#[tokio::test]
async fn a_conversation_that_is_deleted_while_it_is_answered_leaves_nothing() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let body = json!({ "id": "chat", "message": "wait" });
    let mut answer = world.post("/api/chat", &body).with("cookie", &cookie).open().await;
    answer.until("You said").await;
    let deleted = world.ask("DELETE", "/api/sessions/chat").with("cookie", &cookie).send().await;
    assert_eq!(deleted.status, 204);
    world.resume.add_permits(1);
    answer.rest().await;
    while world.running_turns() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let left = world.store.scan(Table::History, Scan::prefix("", 10)).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(world.get("/api/sessions/chat").with("cookie", &cookie).send().await.status, 404);
    let again = world.ask("DELETE", "/api/sessions/chat").with("cookie", &cookie).send().await;
    assert_eq!(again.refusal().0, 404, "and deleting it again changes nothing");
}

#[tokio::test]
async fn an_answer_has_one_rating_which_is_changed_counted_and_on_the_record() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let said = say(&world, &cookie, "chat", "hello").await;
    let message = said.event("start")["messageId"].as_str().unwrap().to_owned();
    let kept = || async {
        let kept = world.get("/api/sessions/chat").with("cookie", &cookie).send().await.json();
        kept["messages"][1]["metadata"]["feedback"].clone()
    };
    let counted = || async {
        let versions = world.get("/api/deck/versions").send().await.json();
        versions["versions"][0]["counters"]["feedback"].clone()
    };
    assert_eq!(kept().await, json!(null));
    assert_eq!(rate(&world, &cookie, "chat", &message, "up").await.status, 200);
    assert_eq!((kept().await, counted().await), (json!({ "rating": "up" }), json!({ "up": 1 })));

    let body =
        json!({ "sessionId": "chat", "messageId": message, "rating": "down", "comment": " Another ship. " });
    for _ in 0..2 {
        let given = world.post("/api/feedback", &body).with("cookie", &cookie).send().await;
        assert_eq!(
            given.json(),
            json!({ "messageId": message, "rating": "down", "comment": "Another ship." })
        );
    }
    assert_eq!(kept().await, json!({ "rating": "down", "comment": "Another ship." }));
    assert_eq!(counted().await, json!({ "up": 0, "down": 1 }));
    let listed = world.get("/api/deck/feedback").send().await.json();
    assert_eq!(listed["feedback"][0]["comment"], "Another ship.");
    assert_eq!(rate(&world, &cookie, "chat", &message, "none").await.status, 200);
    assert_eq!((kept().await, counted().await), (json!(null), json!({ "up": 0, "down": 0 })));

    let lines = world.get("/api/deck/audit?event=feedback").send().await.json()["lines"].clone();
    let ratings: Vec<_> = lines.as_array().unwrap().iter().map(|line| line["rating"].clone()).collect();
    assert_eq!(ratings, ["none", "down", "up"], "once each, the latest first");
    assert!(!lines.to_string().contains("Another ship"), "what a user writes is not in the audit log");
}

#[tokio::test]
async fn a_rating_that_cannot_be_given_is_refused_with_the_reason() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let said = say(&world, &cookie, "chat", "hello").await;
    let message = said.event("start")["messageId"].as_str().unwrap().to_owned();
    let stranger = world.new_client().await;
    assert_eq!(rate(&world, &stranger, "chat", &message, "up").await.refusal().0, 404);
    assert_eq!(rate(&world, &cookie, "chat", "msg_unknown", "up").await.refusal().0, 404);
    assert_eq!(rate(&world, &cookie, "other", &message, "up").await.refusal().0, 404);
    assert_eq!(rate(&world, &cookie, "chat", &message, "great").await.refusal().0, 400);
    let long =
        json!({ "sessionId": "chat", "messageId": message, "rating": "up", "comment": "x".repeat(2_001) });
    let refused = world.post("/api/feedback", &long).with("cookie", &cookie).send().await;
    assert!(refused.refusal().2.contains("2000"), "{:?}", refused.refusal());
}

/// What a client does, each with the number of the client and of the chat.
#[derive(Debug, Clone)]
enum Deed {
    Say(usize, usize),
    Rate(usize, usize),
    Delete(usize, usize),
    /// Tries to read, rate and delete what another client has.
    Intrude(usize, usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let place = (0_usize..3, 0_usize..3);
    prop_oneof![
        4 => place.clone().prop_map(|(client, chat)| Deed::Say(client, chat)),
        2 => place.clone().prop_map(|(client, chat)| Deed::Rate(client, chat)),
        1 => place.clone().prop_map(|(client, chat)| Deed::Delete(client, chat)),
        2 => place.prop_map(|(client, chat)| Deed::Intrude(client, chat)),
    ]
}

/// A conversation as its client should find it.
#[derive(Debug, Default)]
struct Expected {
    session: String,
    /// Of the first answer.
    message: String,
    is_rated: bool,
}

async fn act(
    world: &World,
    clients: &[String],
    expected: &mut BTreeMap<(usize, usize), Expected>,
    deed: Deed,
) {
    match deed {
        Deed::Say(client, chat) => {
            let said =
                say(world, &clients[client], &format!("chat {chat}"), &format!("{client} of {chat}")).await;
            let start = said.event("start");
            let one = expected.entry((client, chat)).or_default();
            if one.message.is_empty() {
                one.session = start["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
                one.message = start["messageId"].as_str().unwrap().to_owned();
            }
        }
        Deed::Rate(client, chat) => {
            let Some(one) = expected.get_mut(&(client, chat)) else { return };
            let rated = rate(world, &clients[client], &format!("chat {chat}"), &one.message, "up").await;
            assert_eq!(rated.status, 200);
            one.is_rated = true;
        }
        Deed::Delete(client, chat) => {
            let path = format!("/api/sessions/chat%20{chat}");
            let deleted = world.ask("DELETE", &path).with("cookie", &clients[client]).send().await;
            let was_there = expected.remove(&(client, chat)).is_some();
            assert_eq!(deleted.status, if was_there { 204 } else { 404 });
        }
        Deed::Intrude(client, chat) => {
            let other = (client + 1) % clients.len();
            let Some(one) = expected.get(&(other, chat)) else { return };
            let cookie = &clients[client];
            let path = format!("/api/sessions/{}", one.session);
            for ask in [world.get(&path), world.ask("DELETE", &path)] {
                assert_eq!(ask.with("cookie", cookie).send().await.status, 404);
            }
            assert_eq!(rate(world, cookie, &one.session, &one.message, "down").await.status, 404);
        }
    }
}

async fn check(world: &World, clients: &[String], expected: &BTreeMap<(usize, usize), Expected>) {
    for (client, cookie) in clients.iter().enumerate() {
        let listed = list(world, cookie, "").await;
        let theirs: BTreeSet<String> =
            expected.keys().filter(|(of, _)| *of == client).map(|(_, chat)| format!("chat {chat}")).collect();
        let seen: BTreeSet<String> = ids(&listed).into_iter().map(str::to_owned).collect();
        assert_eq!(seen, theirs, "client {client}");
        for one in listed["sessions"].as_array().unwrap() {
            assert!(one["title"].as_str().unwrap().starts_with(&client.to_string()), "{one}");
        }
    }
    for ((client, chat), one) in expected {
        let path = format!("/api/sessions/chat%20{chat}");
        let kept = world.get(&path).with("cookie", &clients[*client]).send().await.json();
        let rating = &kept["messages"][1]["metadata"]["feedback"]["rating"];
        assert_eq!(rating, &if one.is_rated { json!("up") } else { json!(null) });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_client_only_ever_sees_rates_and_deletes_its_own_conversations(
        deeds in prop::collection::vec(deed(), 1..14)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let clients = [world.new_client().await, world.new_client().await, world.new_client().await];
            let mut expected = BTreeMap::new();
            for deed in deeds {
                act(&world, &clients, &mut expected, deed).await;
            }
            check(&world, &clients, &expected).await;
        });
    }
}
