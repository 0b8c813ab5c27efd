//! Calls that go from one node to another.

use std::time::{Duration, Instant};

use quarterdeck_server::Settings;
use serde_json::{Value, json};

use super::proxy::Proxy;
use super::{pair, pair_behind_proxy};
use crate::voice::page::Page;
use crate::world::World;

fn again(ready: &Value) -> Value {
    json!({ "sessionId": ready["sessionId"], "resumeToken": ready["resumeToken"] })
}

async fn resume(world: &World, cookie: &str, ready: &Value) -> (Page, Value) {
    let mut page = Page::open(world, "/voice", &[("cookie", cookie)]).await;
    let resumed = page.start(again(ready)).await;
    (page, resumed)
}

#[tokio::test]
async fn a_call_is_handed_over_by_a_node_that_lives() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let (mut first, ready) = Page::calling(&a, &cookie).await;
    first.check_echo().await;
    let (mut second, resumed) = resume(&b, &cookie, &ready).await;
    assert_eq!((&resumed["sessionId"], &resumed["resumed"]), (&ready["sessionId"], &json!(true)));
    assert_eq!(first.ending().await, (None, Some(4001)));
    second.check_echo().await;
    // And back, after the connection was lost.
    drop(second);
    let (mut third, resumed) = resume(&a, &cookie, &ready).await;
    assert_eq!((&resumed["sessionId"], &resumed["resumed"]), (&ready["sessionId"], &json!(true)));
    third.check_echo().await;
}

#[tokio::test]
async fn a_call_whose_node_is_gone_goes_on_at_another_within_two_seconds() {
    goes_on_at_another_node(|proxy| proxy.cut()).await;
}

#[tokio::test]
async fn a_call_whose_node_is_paused_goes_on_at_another_within_two_seconds() {
    goes_on_at_another_node(|proxy| proxy.pause()).await;
}

async fn goes_on_at_another_node(stop: impl FnOnce(&mut Proxy)) {
    let ([a, b], mut proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let (first, ready) = Page::calling(&a, &cookie).await;
    stop(&mut proxy);
    drop(first);
    let began = Instant::now();
    let (mut second, resumed) = resume(&b, &cookie, &ready).await;
    assert_eq!((&resumed["sessionId"], &resumed["resumed"]), (&ready["sessionId"], &json!(true)));
    second.check_echo().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_has_one_call_over_all_nodes_and_its_chat_waits_everywhere() {
    let [a, b] = pair(Settings::default()).await;
    let cookie = a.new_client().await;
    let (mut page, _) = Page::calling(&a, &cookie).await;
    let mut other = Page::open(&b, "/voice", &[("cookie", &cookie)]).await;
    other.send_json(&json!({ "type": "start" })).await;
    let (error, code) = other.ending().await;
    assert_eq!(
        (error.unwrap()["message"].as_str(), code),
        (Some("You are in a call already. End it first."), Some(1008))
    );
    let hello = json!({ "message": "hello" });
    for world in [&a, &b] {
        let refused = world.post("/api/chat", &hello).with("cookie", &cookie).send().await;
        assert_eq!((refused.refusal().0, refused.refusal().1), (409, "CONFLICT".into()));
    }
    let ben = a.new_client().await;
    assert_eq!(b.post("/api/chat", &hello).with("cookie", &ben).send().await.status, 200);
    page.send_json(&json!({ "type": "stop" })).await;
    page.until("session_end").await;
    page.ending().await;
    let (mut next, _) = Page::calling(&b, &cookie).await;
    next.check_echo().await;
    drop(next);
    while a.post("/api/chat", &hello).with("cookie", &cookie).send().await.status == 409 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_call_of_a_node_that_is_gone_holds_nobody_up() {
    let ([a, b], mut proxy) = pair_behind_proxy(Settings::default()).await;
    let cookie = a.new_client().await;
    let (_first, _) = Page::calling(&a, &cookie).await;
    proxy.cut();
    let (mut page, ready) = Page::calling(&b, &cookie).await;
    assert_eq!(ready["resumed"], false);
    page.check_echo().await;
}
