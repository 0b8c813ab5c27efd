//! Origins and host names.

use quarterdeck_server::Settings;

use crate::world::World;

const SHOP: &str = "https://shop.example";

#[tokio::test]
async fn a_page_on_a_foreign_origin_is_refused() {
    let world = World::new().await;
    for path in ["/api/me", "/v1/models", "/nowhere"] {
        let answer = world.get(path).with("origin", "https://evil.example").send().await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.refusal().2.contains("`server.origins`"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("set-cookie"), None);
    }
}

#[tokio::test]
async fn a_page_on_a_listed_origin_may_send_credentials() {
    let world = World::with(Settings { origins: vec![SHOP.into()], ..Settings::default() }).await;
    // Also for an error, so that the page can read it.
    for (path, status) in [("/api/me", 200), ("/api/tools/none", 404)] {
        let answer = world.get(path).with("origin", SHOP).send().await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(SHOP));
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
        assert_eq!(answer.header("vary"), Some("origin"));
    }
}

#[tokio::test]
async fn a_listed_page_passes_the_preflight() {
    let world = World::with(Settings { origins: vec![SHOP.into()], ..Settings::default() }).await;
    let preflight = |origin| {
        world
            .ask("OPTIONS", "/api/chat")
            .with("origin", origin)
            .with("access-control-request-method", "POST")
            .with("access-control-request-headers", "content-type,x-stainless-os")
            .send()
    };
    let answer = preflight(SHOP).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(SHOP));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE, OPTIONS"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("content-type,x-stainless-os"));
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(preflight("https://evil.example").await.status, 403);
}

#[tokio::test]
async fn a_host_name_rebound_to_this_machine_is_refused() {
    let world = World::new().await;
    let answer = world.get("/api/me").with("host", "evil.example").send().await;
    assert_eq!(answer.refusal().0, 403);
    assert_eq!(world.get("/api/me").with("host", "localhost:1").send().await.status, 200);
}
