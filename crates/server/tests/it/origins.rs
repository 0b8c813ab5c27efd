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
async fn a_page_on_this_machine_is_a_visitor_without_the_cookies_and_rights_of_its_user() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    for local in ["http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:5173"] {
        let ask = |path: &str| world.get(path).with("origin", local).with("cookie", &cookie).send();
        let me = ask("/api/me").await;
        assert_eq!((me.status, me.header("access-control-allow-origin")), (200, Some(local)));
        assert_eq!((me.header("access-control-allow-credentials"), me.header("set-cookie")), (None, None));
        assert_ne!(me.json()["clientId"], world.client_of(&cookie).await, "the cookies of all ports are one");
        for (path, status) in [("/api/deck/overview", 403), ("/metrics", 401)] {
            assert_eq!(ask(path).await.status, status, "{path}");
        }
        let key = world.get("/api/me").with("origin", local).with("authorization", "Bearer any-key").send();
        let program = world.get("/api/me").with("authorization", "Bearer any-key").send().await.json();
        assert_ne!(key.await.json()["clientId"], program["clientId"]);
    }
    assert_eq!(world.get("/api/deck/overview").send().await.status, 200, "the operator's own request");
}

#[tokio::test]
async fn operators_rights_do_not_cross_origins_even_with_their_token() {
    let admin = Some("an admin token for tests".to_owned());
    let settings = Settings { origins: vec![SHOP.into()], admin_token: admin, ..Settings::default() };
    let world = World::with(settings).await;
    let ask = || world.get("/api/deck/overview").with("authorization", "Bearer an admin token for tests");
    assert_eq!(ask().send().await.status, 200);
    assert_eq!(ask().with("origin", SHOP).send().await.status, 403);
    assert_eq!(ask().with("origin", "http://localhost:1").send().await.status, 403);
    let world = World::with(Settings { origins: vec![SHOP.into()], ..Settings::default() }).await;
    assert_eq!(world.get("/api/deck/overview").with("origin", SHOP).send().await.status, 403);
}

#[tokio::test]
async fn a_foreign_page_loads_an_open_file_without_becoming_a_client() {
    let world = World::new().await;
    let load =
        |path| world.get(path).with("sec-fetch-site", "cross-site").with("sec-fetch-mode", "no-cors").send();
    let file = load("/web/any/shared/mark.svg").await;
    assert_eq!((file.status, file.header("set-cookie")), (200, None));
    assert_eq!(file.header("cross-origin-resource-policy"), Some("cross-origin"));
    assert_eq!(file.headers("vary").collect::<Vec<_>>(), ["accept-encoding", "origin"]);
    assert_eq!(load("/api/me").await.status, 403);
}

#[tokio::test]
async fn a_listed_page_passes_the_preflight() {
    let world = World::with(Settings { origins: vec![SHOP.into()], ..Settings::default() }).await;
    let preflight = |origin| {
        world
            .ask("OPTIONS", "/api/chat")
            .with("origin", origin)
            .with("access-control-request-method", "POST")
            .with("access-control-request-headers", "content-type,x-quarterdeck-session")
            .send()
    };
    let answer = preflight(SHOP).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(SHOP));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE, OPTIONS"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("content-type,x-quarterdeck-session"));
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
