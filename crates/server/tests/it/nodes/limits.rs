//! Limits that hold over all nodes.

use futures_util::future::join_all;
use quarterdeck_server::Settings;
use quarterdeck_websocket::UpgradeError;
use serde_json::json;

use super::pair;
use crate::voice::page::Page;

#[tokio::test]
async fn messages_are_counted_over_all_nodes() {
    let settings = Settings { messages_per_minute: 50, streams_per_client: 1_000, ..Settings::default() };
    let nodes = pair(settings).await;
    let cookie = nodes[0].new_client().await;
    let hello = json!({ "message": "hello" });
    let mut statuses = Vec::new();
    for _ in 0..10 {
        let asked =
            (0..50).map(|number| nodes[number % 2].post("/api/chat", &hello).with("cookie", &cookie).send());
        statuses.extend(join_all(asked).await.into_iter().map(|answer| answer.status));
    }
    let answered = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((answered, refused), (50, 450));
}

#[tokio::test]
async fn requests_of_an_address_are_counted_over_all_nodes() {
    let nodes = pair(Settings { requests_per_minute: 40, trust_proxy: true, ..Settings::default() }).await;
    let mut admitted = 0;
    for number in 0..200 {
        let asked = nodes[number % 2].get("/api/tools").with("x-forwarded-for", "203.0.113.7").send().await;
        assert!(matches!(asked.status, 200 | 429), "{}", asked.status);
        admitted += usize::from(asked.status == 200);
    }
    assert!((35..=40).contains(&admitted), "{admitted}");
    let probe = nodes[0].get("/healthz").with("x-forwarded-for", "203.0.113.7").send().await;
    assert_eq!(probe.status, 200, "a probe needs no store");
}

#[tokio::test]
async fn a_ticket_is_valid_once_over_all_nodes() {
    let nodes = pair(Settings { voice_per_client: 200, ..Settings::default() }).await;
    let issued = nodes[0].post("/api/voice/ticket", &json!({})).with("authorization", "Bearer sesame");
    let ticket = issued.send().await.json()["ticket"].as_str().unwrap().to_owned();
    let target = format!("/voice?ticket={ticket}");
    let opened = join_all((0..100).map(|number| Page::try_open(&nodes[number % 2], &target, &[]))).await;
    let statuses = opened.into_iter().map(|opened| match opened {
        Ok(_) => 101,
        Err(UpgradeError::Refused { status, .. }) => status,
        Err(error) => panic!("{error}"),
    });
    let statuses: Vec<_> = statuses.collect();
    assert_eq!(statuses.iter().filter(|status| **status == 101).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 99);
}
