//! Pages of other origins, which are known by a session token.

use std::time::Duration;

use quarterdeck_server::{ApiKey, Identity, Settings};
use quarterdeck_websocket::UpgradeError;
use serde_json::{Value, json};

use crate::http::{Answer, Ask};
use crate::voice::page::Page;
use crate::world::{COOKIE_SECRET, World};

const SHOP: &str = "https://shop.example";
const BLOG: &str = "https://blog.example";
const HEADER: &str = "x-quarterdeck-session";

async fn world() -> World {
    World::with(Settings { origins: vec![SHOP.into(), BLOG.into()], ..Settings::default() }).await
}

fn say(world: &World, text: &str) -> Ask {
    world.post("/api/chat", &json!({ "message": text }))
}

fn metadata(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.event("start")["messageMetadata"].clone()
}

fn token_of(answer: &Answer) -> String {
    metadata(answer)["sessionToken"].as_str().unwrap().to_owned()
}

async fn client_of(world: &World, origin: &str, token: &str) -> Value {
    world.get("/api/me").with("origin", origin).with(HEADER, token).send().await.json()
}

#[tokio::test]
async fn a_page_of_another_origin_goes_on_with_its_token_and_without_a_cookie() {
    let world = world().await;
    let first = say(&world, "call ring the bell").with("origin", SHOP).send().await;
    let (token, session) = (token_of(&first), metadata(&first)["sessionId"].clone());
    let asked = first.event("data-confirmation");
    let decision = json!({ "token": asked["data"]["token"], "approve": true });
    let post = || world.post("/api/confirmations", &decision).with("origin", SHOP);
    assert_eq!(post().send().await.status, 400, "without the token it is another client");
    let approved = post().with(HEADER, &token).send().await;
    assert_eq!((approved.status, &approved.json()["data"]["did"]), (200, &json!("ring the bell")));
    assert_eq!(approved.header("set-cookie"), None);
    assert_eq!(approved.header("access-control-allow-origin"), Some(SHOP));
    let me = client_of(&world, SHOP, &token).await;
    assert_eq!(me["sessionId"], session, "after a reload the page finds its conversation by the token");
    let target = format!("/api/sessions/{}", session.as_str().unwrap());
    let loaded = world.get(&target).with("origin", SHOP).with(HEADER, &token).send().await;
    assert_eq!((loaded.status, loaded.header("set-cookie")), (200, None));
    let body = json!({ "message": "hello", "sessionId": session });
    let second = world.post("/api/chat", &body).with("origin", SHOP).with(HEADER, &token).send().await;
    assert_eq!((metadata(&second)["sessionId"].clone(), second.header("set-cookie")), (session, None));
}

#[tokio::test]
async fn a_session_token_opens_no_session_of_another_client() {
    let world = world().await;
    let own = say(&world, "hello").with("origin", SHOP).send().await;
    let other = say(&world, "hello").with("origin", SHOP).send().await;
    let target = format!("/api/sessions/{}", metadata(&other)["sessionId"].as_str().unwrap());
    let read = |token: String| world.get(&target).with("origin", SHOP).with(HEADER, &token).send();
    assert_eq!(read(token_of(&own)).await.status, 404);
    assert_eq!(read(token_of(&other)).await.status, 200);
}

#[tokio::test]
async fn a_session_token_that_does_not_hold_is_refused_with_the_way_out() {
    let world = world().await;
    let token = token_of(&say(&world, "hello").with("origin", SHOP).send().await);
    let refused = |origin: Option<&'static str>, token: String| {
        let ask = world.get("/api/me").with(HEADER, &token);
        let ask = origin.into_iter().fold(ask, |ask, origin| ask.with("origin", origin));
        async move {
            let answer = ask.send().await;
            let (status, kind, message) = answer.refusal();
            assert_eq!((status, kind.as_str()), (401, "AUTH"), "{message}");
            assert!(message.contains("without `X-Quarterdeck-Session`"), "{message}");
            assert_eq!(answer.json()["error"]["details"]["header"], "X-Quarterdeck-Session");
        }
    };
    refused(Some(BLOG), token.clone()).await;
    refused(None, token.clone()).await;
    for changed in ["", "x", &token[..token.len() - 1], &token[1..], &token.replace("c_", "d_")] {
        refused(Some(SHOP), changed.to_owned()).await;
    }
    let twice = world.get("/api/me").with("origin", SHOP).with(HEADER, &token).with(HEADER, &token);
    assert_eq!(twice.send().await.status, 401);
    // In an address or a body it is a word like any other.
    let me = |target: String| world.get(&target).with("origin", SHOP).send();
    let (one, two) =
        (client_of(&world, SHOP, &token).await, me(format!("/api/me?{HEADER}={token}")).await.json());
    assert_ne!(one["clientId"], two["clientId"]);
    world.advance_clock(Duration::from_secs(24 * 3_600));
    refused(Some(SHOP), token).await;
}

#[tokio::test]
async fn a_session_token_is_renewed_in_use() {
    let world = world().await;
    let mut token = token_of(&say(&world, "hello").with("origin", SHOP).send().await);
    let client = client_of(&world, SHOP, &token).await["clientId"].clone();
    for _ in 0..3 {
        world.advance_clock(Duration::from_secs(23 * 3_600));
        token = token_of(&say(&world, "again").with("origin", SHOP).with(HEADER, &token).send().await);
    }
    assert_eq!(client_of(&world, SHOP, &token).await["clientId"], client);
}

#[tokio::test]
async fn a_stronger_credential_gets_no_session_token_and_wins_over_one() {
    let keys = vec![ApiKey::new("ann", "sesame")];
    let settings = Settings { origins: vec![SHOP.into()], ..Settings::default() };
    let world = World::with_identity(settings, Identity::new(COOKIE_SECRET, None, keys)).await;
    let token = token_of(&say(&world, "hello").with("origin", SHOP).send().await);
    let key = |ask: Ask| ask.with("origin", SHOP).with("authorization", "Bearer sesame").send();
    assert_eq!(metadata(&key(say(&world, "hello")).await)["sessionToken"], json!(null));
    let me = key(world.get("/api/me").with(HEADER, &token)).await.json();
    assert_eq!((&me["clientId"], &me["sessionId"]), (&json!("key:ann"), &json!(null)));
    assert_eq!(key(world.get("/api/me").with(HEADER, "forged")).await.status, 401);
}

#[tokio::test]
async fn our_own_page_has_a_token_only_while_it_has_no_cookie() {
    let world = world().await;
    let cookie = world.new_client().await;
    let known = say(&world, "hello").with("cookie", &cookie).send().await;
    assert_eq!(metadata(&known)["sessionToken"], json!(null));
    // In a frame on another site, the browser may send none.
    let first = say(&world, "hello").send().await;
    let token = token_of(&first);
    let me = world.get("/api/me").with(HEADER, &token).send().await;
    assert_eq!((&me.json()["sessionId"], me.header("set-cookie")), (&metadata(&first)["sessionId"], None));
    assert_eq!(world.get("/api/me").with("origin", SHOP).with(HEADER, &token).send().await.status, 401);
}

#[tokio::test]
async fn a_ticket_belongs_to_the_client_and_the_page_that_asked_for_it() {
    let world = world().await;
    let ticket = |token: Option<String>| {
        let ask = world.post("/api/voice/ticket", &json!({})).with("origin", SHOP);
        token.into_iter().fold(ask, |ask, token| ask.with(HEADER, &token)).send()
    };
    // A call may be the first thing that a visitor does.
    let first = ticket(None).await;
    assert_eq!((first.status, first.header("cache-control")), (200, Some("no-store")));
    let token = first.json()["sessionToken"].as_str().unwrap().to_owned();
    let client = client_of(&world, SHOP, &token).await["clientId"].as_str().unwrap().to_owned();
    let target = |answer: &Answer| format!("/voice?ticket={}", answer.json()["ticket"].as_str().unwrap());
    let mut page = Page::open(&world, &target(&first), &[("origin", SHOP)]).await;
    page.start(json!({})).await;
    assert!(world.orchestrator.has_voice_session(&client));
    // The next one is of the same client, and of no other page.
    let second = target(&ticket(Some(token)).await);
    for headers in [&[("origin", BLOG)][..], &[]] {
        let refused = Page::try_open(&world, &second, headers).await;
        assert!(matches!(refused, Err(UpgradeError::Refused { status: 401, .. })));
    }
    assert!(Page::try_open(&world, &second, &[("origin", SHOP)]).await.is_ok());
}
