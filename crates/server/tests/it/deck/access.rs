//! Access of operators.

use quarterdeck_server::Settings;
use serde_json::{Value, json};

use crate::world::World;

/// Every path of the deck with its methods.
async fn operations(world: &World) -> Vec<(String, String)> {
    let document: Value = world.get("/openapi.json").send().await.json();
    let paths = document["paths"].as_object().unwrap().clone();
    let deck = paths.into_iter().filter(|(path, _)| path.starts_with("/api/deck/"));
    deck.flat_map(|(path, methods)| {
        let methods: Vec<String> = methods.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| (method.to_uppercase(), path.replace("{id}", "x")))
    })
    .collect()
}

#[tokio::test]
async fn every_deck_path_requires_the_admin_token() {
    let world = World::with(Settings { admin_token: Some("sesame".into()), ..Settings::default() }).await;
    let all = operations(&world).await;
    assert!(all.len() >= 13, "{all:?}");
    for (method, path) in &all {
        let body = json!({ "tool": "probe", "clientId": "x", "confirm": "erase" });
        for token in [None, Some("Bearer wrong"), Some("Bearer sesam")] {
            let ask = world.ask(method, path).json(&body);
            let ask = token.into_iter().fold(ask, |ask, token| ask.with("authorization", token));
            let refused = ask.send().await;
            assert_eq!(
                (refused.refusal().0, &*refused.refusal().1),
                (403, "AUTH"),
                "{method} {path} {token:?}"
            );
        }
    }
    let overview = world.get("/api/deck/overview").with("authorization", "Bearer sesame").send().await;
    assert_eq!(overview.status, 200);
    let log = std::fs::read_to_string(&world.audit_log).unwrap();
    assert!(!log.contains("operator"), "nothing was done: {log}");
}

#[tokio::test]
async fn without_an_admin_token_only_this_machine_is_an_operator() {
    let world = World::new().await;
    assert_eq!(world.get("/api/deck/overview").send().await.status, 200);
    let open = World::with(Settings { is_loopback: false, ..Settings::default() }).await;
    assert_eq!(open.get("/api/deck/overview").send().await.refusal().0, 403);
    let proxied = World::with(Settings { trust_proxy: true, ..Settings::default() }).await;
    assert_eq!(proxied.get("/api/deck/overview").send().await.refusal().0, 403);
}

#[tokio::test]
async fn a_foreign_page_cannot_act_for_an_operator() {
    let world = World::new().await;
    let body = json!({ "clientId": "c_1", "confirm": "erase" });
    let refused =
        world.post("/api/deck/clients/erase", &body).with("origin", "https://evil.example").send().await;
    assert_eq!(refused.status, 403);
}
