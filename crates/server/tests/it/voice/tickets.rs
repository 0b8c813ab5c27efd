//! Tickets for calls.

use std::time::Duration;

use quarterdeck_server::{ApiKey, Identity, Settings};
use quarterdeck_websocket::UpgradeError;
use serde_json::json;

use super::page::Page;
use crate::world::{COOKIE_SECRET, World};

/// A server with an API key of the client `key:ann`.
async fn world() -> World {
    let keys = vec![ApiKey::new("ann", "sesame")];
    World::with_identity(Settings::default(), Identity::new(COOKIE_SECRET, None, keys)).await
}

async fn ticket(world: &World) -> String {
    let answer =
        world.post("/api/voice/ticket", &json!({})).with("authorization", "Bearer sesame").send().await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    assert_eq!(answer.json()["expiresInSeconds"], 60);
    answer.json()["ticket"].as_str().unwrap().to_owned()
}

async fn status(world: &World, ticket: &str) -> u16 {
    match Page::try_open(world, &format!("/voice?ticket={ticket}"), &[]).await {
        Ok(_) => 101,
        Err(UpgradeError::Refused { status, .. }) => status,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_ticket_identifies_the_caller_before_a_cookie() {
    let world = world().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let target = format!("/voice?ticket={}", ticket(&world).await);
    let mut page = Page::open(&world, &target, &[("cookie", &cookie)]).await;
    page.start(json!({})).await;
    assert!(world.orchestrator.has_voice_session("key:ann"));
    assert!(!world.orchestrator.has_voice_session(&client));
    page.check_echo().await;
}

#[tokio::test]
async fn a_bearer_token_identifies_the_caller_without_a_ticket() {
    let world = world().await;
    let mut page = Page::open(&world, "/voice", &[("authorization", "Bearer sesame")]).await;
    page.start(json!({})).await;
    assert!(world.orchestrator.has_voice_session("key:ann"));
    let refused = Page::try_open(&world, "/voice", &[("authorization", "Bearer wrong")]).await;
    assert!(matches!(refused, Err(UpgradeError::Refused { status: 401, .. })));
}

#[tokio::test]
async fn a_ticket_is_valid_once_for_a_minute() {
    let world = world().await;
    let used = ticket(&world).await;
    assert_eq!(status(&world, &used).await, 101);
    assert_eq!(status(&world, &used).await, 401);
    let old = ticket(&world).await;
    world.advance_clock(Duration::from_secs(61));
    assert_eq!(status(&world, &old).await, 401);
    assert_eq!(status(&world, &ticket(&world).await).await, 101);
    for forged in ["", "x", "eyJ9.00", &used.replace('.', "")] {
        assert_eq!(status(&world, forged).await, 401, "{forged}");
    }
}
