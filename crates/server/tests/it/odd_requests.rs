//! Malformed requests.

use serde_json::json;

use crate::http::raw;
use crate::world::World;

#[tokio::test]
async fn a_path_that_is_not_utf8_is_refused_in_the_paths_error_format() {
    let world = World::new().await;
    for path in ["/api/sessions/%FF", "/api/tools/%C3%28", "/api/chat/%80/stream", "/v1/models/%FF"] {
        let answer = world.get(path).send().await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert!(answer.refusal().2.contains("UTF-8"), "{path}");
    }
    let answer = world.get("/v1/models/%FF").send().await;
    assert_eq!(answer.refusal().1, "invalid_request_error");
}

#[tokio::test]
async fn an_odd_id_is_not_found() {
    let world = World::new().await;
    for id in ["%00", "%2e%2e", "a%2Fb", "%F0%9F%90%99", "%25FF", &"x".repeat(5_000), "%", "%zz"] {
        assert_eq!(world.get(&format!("/api/sessions/{id}")).send().await.refusal().0, 404, "{id}");
        assert_eq!(world.get(&format!("/api/tools/{id}")).send().await.refusal().0, 404, "{id}");
        assert_eq!(world.get(&format!("/api/chat/{id}/stream")).send().await.status, 204, "{id}");
    }
}

#[tokio::test]
async fn an_invalid_query_is_refused_as_json() {
    let world = World::new().await;
    for query in ["format=xml", "format=json&format=json", "format=%FF", "format"] {
        let answer = world.get(&format!("/metrics?{query}")).send().await;
        assert_eq!((answer.refusal().0, answer.refusal().1), (400, "VALIDATION".into()), "{query}");
    }
    assert_eq!(world.get("/metrics?format=prometheus&other=1").send().await.status, 200);
}

#[tokio::test]
async fn another_method_is_refused_with_the_allowed_ones() {
    let world = World::new().await;
    for (path, allowed) in
        [("/api/chat", "POST"), ("/v1/models", "GET,HEAD"), ("/api/sessions/1", "GET,HEAD,DELETE")]
    {
        for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW", "QUERY"] {
            let answer = world.ask(method, path).send().await;
            assert_eq!(answer.refusal().0, 405, "{method} {path}");
            let mut given: Vec<_> = answer.header("allow").unwrap().split(',').collect();
            let mut wanted: Vec<_> = allowed.split(',').collect();
            given.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(given, wanted, "{method} {path}");
        }
    }
    let head = world.ask("HEAD", "/api/tools").send().await;
    assert_eq!((head.status, head.text()), (200, String::new()));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let world = World::new().await;
    let bodies: [&[u8]; 8] = [
        b"",
        b"null",
        b"\"\xff\"",
        b"{\"message\":\"\\ud800\"}",
        b"{\"message\":1e999}",
        b"[]",
        b"{",
        b"\xef\xbb\xbf{}",
    ];
    for body in bodies {
        for path in ["/api/chat", "/api/confirmations", "/v1/chat/completions"] {
            let answer = world.ask("POST", path).body(body).send().await;
            assert_eq!(answer.refusal().0, 400, "{path} {body:?}");
        }
    }
}

#[tokio::test]
async fn odd_ids_in_a_body_cause_no_server_error() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    for id in ["", "\0", "../..", "🐙", &"x".repeat(50_000)] {
        let say = |body| world.post("/api/chat", &body).with("cookie", &cookie).send();
        let answer = say(json!({ "message": "hello", "sessionId": id })).await;
        assert_eq!(answer.refusal().0, 404);
        let answer = say(json!({ "message": "hello", "id": id, "timeZone": id, "locale": [id] })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn odd_request_heads_do_not_stop_the_server() {
    let world = World::new().await;
    let large = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(300_000));
    let many = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(200));
    let heads: [(&[u8], u16); 6] = [
        (large.as_bytes(), 431),
        (many.as_bytes(), 431),
        (b"GET  HTTP/1.1\r\n\r\n", 400),
        (b"\xff\xff\xff\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400),
    ];
    for (head, status) in heads {
        let answer = raw(world.address, head).await.rest().await;
        assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&head[..40.min(head.len())]));
    }
    let twice = world.get("/api/me").with("cookie", "a=b").with("cookie", "quarterdeck_client=x; ;=");
    assert_eq!(twice.send().await.status, 200);
    assert_eq!(world.get("/healthz").send().await.text(), "ok");
}

#[tokio::test]
async fn an_invalid_idempotency_key_is_refused() {
    let world = World::new().await;
    let say = |key: &str| {
        world.post("/api/chat", &json!({ "message": "hello" })).with("idempotency-key", key).send()
    };
    for key in ["", "a b", "é", &"x".repeat(201)] {
        assert_eq!(say(key).await.refusal().0, 400, "{key}");
    }
    assert_eq!(say(&"x".repeat(200)).await.status, 200);
}
