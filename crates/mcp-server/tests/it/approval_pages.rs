//! Confirmation on a page of ours, for a client that cannot ask its user.

use std::time::Duration;

use quarterdeck_contracts::ConfirmationAnswer;
use quarterdeck_mcp_server::{ApprovalError, Approver, McpSettings};
use serde_json::{Value, json};

use crate::pipe::text;
use crate::post::{PAGES, Poster};
use crate::world::World;

const ANN: Option<Approver<'_>> = Some(Approver::Client("ann"));
const APPROVE: ConfirmationAnswer = ConfirmationAnswer::Approve;

fn rent() -> Value {
    json!({ "what": "rent" })
}

fn ann(world: &World) -> Poster {
    Poster::new(world, "ann", json!({})).with_pages()
}

async fn call(poster: &Poster, args: Value) -> (String, bool) {
    text(&poster.call("pay", args, json!({}), json!({})).await)
}

/// Calls, and gives the id of the page that the refusal names.
async fn page(poster: &Poster) -> String {
    let (told, is_error) = call(poster, rent()).await;
    assert!(is_error, "{told}");
    let (_, rest) = told.split_once(&format!("{PAGES}/")).unwrap_or_else(|| panic!("{told}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn an_approved_call_runs_once_when_it_is_made_again() {
    let world = World::new();
    let ann = ann(&world);
    let id = page(&ann).await;
    assert_eq!(page(&ann).await, id, "asked again, it is the same page");
    let shown = world.server.find_approval(&id, ANN).unwrap();
    assert_eq!((shown.request.preview.as_str(), &shown.request.args), ("Pay the rent.", &rent()));
    assert_eq!(shown.request.token, None);
    world.server.decide_approval(&id, ANN, APPROVE).unwrap();
    assert_eq!(world.effects.in_all(), 0, "nothing runs before the call is made again");
    assert!(call(&ann, json!({ "what": "fine" })).await.1, "another call is another question");
    assert_eq!(call(&ann, rent()).await, (r#"{"did":"rent"}"#.to_owned(), false));
    assert_eq!(
        world.steps.take(),
        ["requested", "approved_on_page", "requested", "approved"],
        "in the audit log"
    );
    assert_ne!(page(&ann).await, id, "the next equal call is asked about again");
    assert_eq!((world.effects.times("rent"), world.effects.in_all()), (1, 1));
    assert_eq!(world.server.find_approval(&id, ANN), Err(ApprovalError::NotFound));
}

#[tokio::test]
async fn a_denied_call_is_told_so_once_and_does_not_run() {
    let world = World::new();
    let ann = ann(&world);
    let id = page(&ann).await;
    world.server.decide_approval(&id, Some(Approver::ThisMachine), ConfirmationAnswer::Deny).unwrap();
    assert_eq!(world.server.decide_approval(&id, ANN, APPROVE), Err(ApprovalError::Decided));
    assert_eq!(call(&ann, rent()).await, ("The user did not approve pay.".to_owned(), true));
    assert_ne!(page(&ann).await, id);
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn an_approval_is_for_the_client_and_session_that_asked() {
    let world = World::new();
    let ann = ann(&world);
    let id = page(&ann).await;
    world.server.decide_approval(&id, ANN, APPROVE).unwrap();
    let bob = Poster::new(&world, "bob", json!({})).with_pages();
    assert!(call(&bob, rent()).await.1);
    let other = ann.call("pay", rent(), json!({}), json!({ "quarterdeck/session": "other" })).await;
    assert!(text(&other).1);
    assert_eq!(world.effects.in_all(), 0);
    assert!(!call(&ann, rent()).await.1);
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn an_approval_that_is_not_used_in_time_is_void() {
    let world = World::new();
    let ann = ann(&world);
    let id = page(&ann).await;
    world.server.decide_approval(&id, ANN, APPROVE).unwrap();
    world.clock.advance(Duration::from_secs(300));
    assert_ne!(page(&ann).await, id);
    assert_eq!(world.server.decide_approval(&id, ANN, APPROVE), Err(ApprovalError::NotFound));
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn an_idempotency_key_does_not_hold_on_to_the_question() {
    let world = World::new();
    let ann = ann(&world);
    let key = || json!({ "quarterdeck/idempotencyKey": "rent-of-may-2026" });
    let (told, _) = text(&ann.call("pay", rent(), json!({}), key()).await);
    let id = told.split(&format!("{PAGES}/")).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    world.server.decide_approval(&id, ANN, APPROVE).unwrap();
    for _ in 0..2 {
        let answer = ann.call("pay", rent(), json!({}), key()).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "did": "rent" }), "{answer}");
    }
    assert_eq!(world.effects.times("rent"), 1);
}

#[tokio::test]
async fn a_key_whose_question_has_expired_says_so() {
    let world = World::new();
    let ann = ann(&world);
    let key = || json!({ "quarterdeck/idempotencyKey": "rent-of-may-2026" });
    ann.call("pay", rent(), json!({}), key()).await;
    world.clock.advance(Duration::from_secs(300));
    let (told, is_error) = text(&ann.call("pay", rent(), json!({}), key()).await);
    assert!(is_error && told.contains("expired"), "{told}");
    assert_eq!(world.effects.in_all(), 0);
}

#[tokio::test]
async fn where_there_are_no_pages_or_they_are_turned_off_no_link_is_given() {
    let off = World::with(McpSettings { approval_pages: false, ..McpSettings::default() });
    let none = World::new();
    for ann in [ann(&off), Poster::new(&none, "ann", json!({}))] {
        let (told, is_error) = call(&ann, rent()).await;
        assert!(is_error && told.contains("cannot ask") && !told.contains("http"), "{told}");
    }
    assert_eq!(off.effects.in_all() + none.effects.in_all(), 0);
}
