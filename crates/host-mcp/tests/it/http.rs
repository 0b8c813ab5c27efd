//! Servers over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarterdeck_contracts::handler::Handler;
use quarterdeck_contracts::{ErrorType, UpstreamState};
use quarterdeck_host_mcp::{HttpConfig, OAuthConfig, UpstreamTransport};
use quarterdeck_outbound::SecretText;
use serde_json::json;

use crate::http_server::{Answer, HttpServer, Request, ordinary};
use crate::world::{Kind, World, call, data, error, reason};

fn config(port: u16) -> HttpConfig {
    HttpConfig {
        url: format!("http://127.0.0.1:{port}/mcp").parse().unwrap(),
        headers: BTreeMap::from([("x-key".to_owned(), SecretText::from("hunter2"))]),
        oauth: None,
        private_hosts: vec![format!("127.0.0.1:{port}").parse().unwrap()],
    }
}

fn world(server: &HttpServer) -> World {
    World::with_transport(UpstreamTransport::Http(config(server.port)))
}

fn echo(world: &World, kind: Kind) -> Arc<dyn Handler> {
    world.tool("echo", kind)
}

fn is_call(request: &Request) -> bool {
    request.rpc_method() == "tools/call"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_called_with_its_own_headers_in_its_own_session() {
    let server = HttpServer::start(ordinary).await;
    let world = world(&server);
    assert_eq!(
        data(call(&echo(&world, Kind::Reads), json!({ "text": "x" })).await),
        json!({ "text": "answered" })
    );
    for request in server.requests() {
        assert_eq!(request.headers.get("x-key").map(String::as_str), Some("hunter2"));
        let is_first = request.rpc_method() == "initialize";
        assert_eq!(request.headers.contains_key("mcp-session-id"), !is_first, "{request:?}");
    }
    let view = world.view();
    assert_eq!(
        (view.state, &*view.address),
        (UpstreamState::Connected, &*format!("http://127.0.0.1:{}/mcp", server.port))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_come_as_events() {
    let server = HttpServer::start(|request| match is_call(request) {
        false => ordinary(request),
        true => {
            let id = request.message()["id"].clone();
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "streamed" }] } });
            let forged = json!({ "jsonrpc": "2.0", "id": 9_999, "result": { "content": [] } });
            Answer::events(&format!(": hello\n\nevent: message\ndata: {forged}\n\ndata: {answer}\n\n"))
        }
    })
    .await;
    let world = world(&server);
    assert_eq!(data(call(&echo(&world, Kind::Reads), json!({})).await), json!({ "text": "streamed" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let elsewhere = HttpServer::start(ordinary).await;
    let place = format!("http://127.0.0.1:{}/mcp", elsewhere.port);
    let server = HttpServer::start(move |request| match is_call(request) {
        true => Answer::status(307).with("location", &place),
        false => ordinary(request),
    })
    .await;
    let world = world(&server);
    let refused = error(call(&echo(&world, Kind::Writes), json!({})).await);
    assert_eq!(refused.kind, ErrorType::Unavailable);
    assert!(elsewhere.requests().is_empty());
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_opened_is_not_dialled() {
    let server = HttpServer::start(ordinary).await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/mcp", server.port).parse().unwrap();
        let closed = HttpConfig { url, private_hosts: Vec::new(), ..config(server.port) };
        let world = World::with_transport(UpstreamTransport::Http(closed));
        assert_eq!(
            reason(&error(call(&echo(&world, Kind::Reads), json!({})).await)),
            "server_down",
            "{host}"
        );
        let trouble = world.view().trouble.unwrap();
        assert!(trouble.contains("not on the public internet"), "{trouble}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_session_is_begun_anew_and_the_call_is_not_sent_again() {
    let calls = AtomicUsize::new(0);
    let server = HttpServer::start(move |request| match is_call(request) {
        true if calls.fetch_add(1, Ordering::SeqCst) == 0 => Answer::status(404),
        _ => ordinary(request),
    })
    .await;
    let world = world(&server);
    let echo = echo(&world, Kind::Writes);
    assert_eq!(error(call(&echo, json!({})).await).kind, ErrorType::Unavailable);
    assert_eq!(server.count("tools/call"), 1);
    world.until(|world| world.view().restarts == 1).await;
    assert_eq!(data(call(&echo, json!({})).await), json!({ "text": "answered" }));
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_server_leaves_a_write_unknown_and_is_asked_once() {
    let server = HttpServer::start(|request| match is_call(request) {
        true => Answer::status(502),
        false => ordinary(request),
    })
    .await;
    let world = world(&server);
    let unknown = error(call(&echo(&world, Kind::Writes), json!({})).await);
    assert_eq!(unknown.details.unwrap()["outcome"], "unknown");
    let lost = error(call(&echo(&world, Kind::Reads), json!({})).await);
    assert_eq!((lost.kind, lost.retryable), (ErrorType::Transient, true));
    assert_eq!(server.count("tools/call"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_beyond_the_limits_are_refused_at_once() {
    let deep = || format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    type Body = Box<dyn Fn(&str) -> Answer + Send + Sync>;
    let bodies: Vec<(&str, Body)> = vec![
        (
            "huge",
            Box::new(|id| {
                Answer::json(
                    &json!({ "jsonrpc": "2.0", "id": id.parse::<i64>().unwrap(), "result": { "x": "y".repeat(5 << 20) } }),
                )
            }),
        ),
        (
            "deep",
            Box::new(move |id| {
                let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", deep());
                Answer { body: body.into_bytes(), ..Answer::json(&json!(null)) }
            }),
        ),
        (
            "no text",
            Box::new(|id| {
                let mut body =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"x\":\"")
                        .into_bytes();
                body.extend_from_slice(b"\xff\xfe\"}}");
                Answer { body, ..Answer::json(&json!(null)) }
            }),
        ),
        (
            "a page",
            Box::new(|_| Answer {
                body: b"<html>".to_vec(),
                ..Answer::status(200).with("content-type", "text/html")
            }),
        ),
        ("huge event", Box::new(|_| Answer::events(&format!("data: {}\n\n", "y".repeat(5 << 20))))),
    ];
    for (name, body) in bodies {
        let server = HttpServer::start(move |request| match is_call(request) {
            true => body(&request.message()["id"].to_string()),
            false => ordinary(request),
        })
        .await;
        let world = world(&server);
        let refused = error(call(&echo(&world, Kind::Reads), json!({})).await);
        assert_eq!((refused.kind, reason(&refused)), (ErrorType::Permanent, "invalid_answer"), "{name}");
        assert_eq!(world.view().failures, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_makes_its_tools_unavailable() {
    let server = HttpServer::start(ordinary).await;
    let world = world(&server);
    let echo = echo(&world, Kind::Writes);
    data(call(&echo, json!({})).await);
    server.stop().await;
    // The first call may go out on a connection that was open; it is not known then whether it was received.
    error(call(&echo, json!({})).await);
    world.until(|world| world.view().state == UpstreamState::Disconnected).await;
    let refused = error(call(&echo, json!({})).await);
    assert_eq!((refused.kind, reason(&refused)), (ErrorType::Unavailable, "server_down"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_kept_and_a_refused_one_is_replaced_once() {
    let issued = Arc::new(AtomicUsize::new(0));
    let script = {
        let issued = issued.clone();
        move |request: &Request| {
            if request.path == "/token" {
                let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
                let token = format!("token-{number}");
                return Answer::json(
                    &json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }),
                );
            }
            let bearer = request.headers.get("authorization").cloned().unwrap_or_default();
            // The first token is good until the first call.
            match is_call(request) && bearer == "Bearer token-1" {
                true => Answer::status(401),
                false => ordinary(request),
            }
        }
    };
    let server = HttpServer::start(script).await;
    let oauth = OAuthConfig {
        client_id: "desk".into(),
        client_secret: SecretText::from("s3cret"),
        scopes: vec!["tools".into()],
        token_url: Some(format!("http://127.0.0.1:{}/token", server.port).parse().unwrap()),
    };
    let config = HttpConfig { oauth: Some(oauth), ..config(server.port) };
    let world = World::with_transport(UpstreamTransport::Http(config));
    let echo = echo(&world, Kind::Writes);
    assert_eq!(error(call(&echo, json!({})).await).kind, ErrorType::Unavailable);
    assert_eq!(server.count("tools/call"), 1, "a call is never sent twice");
    assert_eq!(data(call(&echo, json!({})).await), json!({ "text": "answered" }));
    assert_eq!(issued.load(Ordering::SeqCst), 2);
    let asked = server.requests().into_iter().find(|request| request.path == "/token").unwrap();
    assert!(asked.headers["authorization"].starts_with("Basic "));
    assert!(
        asked.body.contains("grant_type=client_credentials") && asked.body.contains("scope=tools"),
        "{}",
        asked.body
    );
    assert!(asked.body.contains("resource=http%3A%2F%2F127.0.0.1"), "{}", asked.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_issues_tokens_is_asked_of_the_servers_own_metadata() {
    let port = Arc::new(AtomicUsize::new(0));
    let script = {
        let port = port.clone();
        move |request: &Request| {
            let base = format!("http://127.0.0.1:{}", port.load(Ordering::SeqCst));
            match request.path.as_str() {
                "/.well-known/oauth-protected-resource/mcp" => {
                    Answer::json(&json!({ "authorization_servers": [format!("{base}/issuer")] }))
                }
                "/.well-known/oauth-authorization-server/issuer" => Answer::json(&json!({
                    "issuer": format!("{base}/issuer"), "token_endpoint": format!("{base}/token"),
                })),
                "/token" => Answer::json(&json!({ "access_token": "good", "token_type": "bearer" })),
                _ if request.headers.get("authorization").is_some_and(|value| value == "Bearer good") => {
                    ordinary(request)
                }
                // Where this points to is not looked at.
                _ => Answer::status(401)
                    .with("www-authenticate", "Bearer resource_metadata=\"http://169.254.169.254/\""),
            }
        }
    };
    let server = HttpServer::start(script).await;
    port.store(server.port.into(), Ordering::SeqCst);
    let oauth = OAuthConfig {
        client_id: "desk".into(),
        client_secret: SecretText::from("s3cret"),
        scopes: Vec::new(),
        token_url: None,
    };
    let config = HttpConfig { oauth: Some(oauth), ..config(server.port) };
    let world = World::with_transport(UpstreamTransport::Http(config));
    assert_eq!(data(call(&echo(&world, Kind::Reads), json!({})).await), json!({ "text": "answered" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_newer_revision_alone_is_discovered() {
    let server = HttpServer::start(|request| {
        let message = request.message();
        match request.rpc_method().as_str() {
            "initialize" => Answer { status: 400, ..Answer::status(400) },
            "server/discover" => Answer::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "ttlMs": 0, "cacheScope": "private",
            } })),
            _ => ordinary(request),
        }
    })
    .await;
    let world = world(&server);
    assert_eq!(data(call(&echo(&world, Kind::Reads), json!({})).await), json!({ "text": "answered" }));
    assert_eq!(world.view().server.unwrap().protocol_version, "2026-07-28");
}
