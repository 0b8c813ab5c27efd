//! Conversations that operators may read.

use std::time::Duration;

use quarterdeck_server::Settings;
use serde_json::{Value, json};

use super::get;
use crate::world::World;

async fn world() -> World {
    World::keeping_conversations(Duration::from_secs(7 * 24 * 3_600)).await
}

/// A client who has said something: its id, its session and the id of the answer.
async fn client_who_said(world: &World, words: &str) -> (String, String, String, String) {
    let cookie = world.new_client().await;
    let body = json!({ "message": words });
    let answer = world.post("/api/chat", &body).with("cookie", &cookie).send().await;
    let start = answer.event("start");
    let session = start["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let message = start["messageId"].as_str().unwrap().to_owned();
    (world.client_of(&cookie).await, session, message, cookie)
}

async fn actions(world: &World, action: &str) -> Vec<Value> {
    let lines = get(world, "audit?event=operator").await["lines"].as_array().unwrap().clone();
    lines.into_iter().filter(|line| line["action"] == action).collect()
}

#[tokio::test]
async fn without_keep_the_deck_says_so_and_how_to_switch_it_on() {
    let world = World::with(Settings::default()).await;
    let (_, session, ..) = client_who_said(&world, "hello").await;
    for list in ["conversations", "unanswered"] {
        let listed = get(&world, list).await;
        assert_eq!(listed["retainDays"], Value::Null);
        assert!(listed["hint"].as_str().unwrap().contains("keep = \"on\""), "{listed}");
    }
    let (status, _, message) =
        world.get(&format!("/api/deck/conversations/{session}")).send().await.refusal();
    assert_eq!(status, 404);
    assert!(message.contains("QUARTERDECK_TRANSCRIPTS__KEY"), "{message}");
    assert_eq!(actions(&world, "open_conversation").await, Vec::<Value>::new());
}

#[tokio::test]
async fn each_opening_is_one_audit_line_and_a_list_shows_no_words() {
    let world = world().await;
    let (client, session, ..) = client_who_said(&world, "hello there").await;
    let listed = get(&world, "conversations").await;
    assert_eq!(listed["conversations"][0]["sessionId"], json!(session));
    assert!(!listed.to_string().contains("hello there"), "{listed}");
    for opened in 1..=2 {
        let shown = get(&world, &format!("conversations/{session}")).await;
        assert_eq!(shown["turns"][0]["user"], "hello there");
        let lines = actions(&world, "open_conversation").await;
        assert_eq!(lines.len(), opened);
        assert_eq!((&lines[0]["sessionId"], &lines[0]["clientId"]), (&json!(session), &json!(client)));
        assert_eq!(lines[0]["by"], "deck 127.0.0.1");
    }
    assert_eq!(world.get("/api/deck/conversations/ses_unknown").send().await.refusal().0, 404);
    assert_eq!(
        actions(&world, "open_conversation").await.len(),
        2,
        "nothing was shown, so nothing was opened"
    );
}

#[tokio::test]
async fn a_question_with_thumbs_down_is_listed_and_exported_in_both_forms() {
    let world = world().await;
    let (_, session, message, cookie) = client_who_said(&world, "Who was the cat?").await;
    client_who_said(&world, "hello").await;
    let body = json!({ "sessionId": session, "messageId": message, "rating": "down", "comment": "No." });
    assert_eq!(world.post("/api/feedback", &body).with("cookie", &cookie).send().await.status, 200);
    let listed = get(&world, "unanswered").await;
    let questions = listed["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 1, "{listed}");
    assert_eq!(
        (&questions[0]["question"], &questions[0]["reason"], &questions[0]["comment"]),
        (&json!("Who was the cat?"), &json!("thumbs_down"), &json!("No."))
    );
    assert_eq!(actions(&world, "list_unanswered").await.len(), 1);
    let chosen = json!([{ "sessionId": session, "turn": questions[0]["turn"] }]);
    for (form, name) in [("records", "unanswered.jsonl"), ("cases", "unanswered.case.json")] {
        let body = json!({ "form": form, "questions": chosen });
        let file = world.post("/api/deck/unanswered/export", &body).send().await.json();
        assert_eq!((&file["name"], &file["questions"]), (&json!(name), &json!(1)));
        assert!(file["text"].as_str().unwrap().contains("Who was the cat?"), "{file}");
    }
    let none = json!({ "form": "cases", "questions": [{ "sessionId": session, "turn": 99 }] });
    assert_eq!(world.post("/api/deck/unanswered/export", &none).send().await.refusal().0, 404);
    assert_eq!(actions(&world, "export_unanswered").await.len(), 2);
}

#[tokio::test]
async fn a_trail_that_cannot_be_written_shows_nothing() {
    let world = world().await;
    let (_, session, ..) = client_who_said(&world, "hello").await;
    // A folder in its place cannot be appended to.
    std::fs::remove_file(&world.audit_log).unwrap();
    std::fs::create_dir(&world.audit_log).unwrap();
    let (status, _, message) =
        world.get(&format!("/api/deck/conversations/{session}")).send().await.refusal();
    assert_eq!(status, 503, "{message}");
    assert!(message.contains("audit log"), "{message}");
}
