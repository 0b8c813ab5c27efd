//! One line for each request, with these fields and no others.

use quarterdeck_server::Settings;
use serde_json::{Value, json};
use tracing::Level;

use crate::log_lines::{LogLines, without_times};
use crate::voice::page::Page;
use crate::world::World;

fn number(id: Option<&str>) -> Value {
    json!(id.unwrap().parse::<u64>().unwrap())
}

#[tokio::test]
async fn the_line_of_a_chat_stream_has_its_session_and_what_was_sent() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let answer =
        world.post("/api/chat?a=b", &json!({ "message": "hello" })).with("cookie", &cookie).send().await;
    let session = answer.event("start")["messageMetadata"]["sessionId"].clone();
    assert_eq!(
        without_times(lines.request("/api/chat").await),
        json!({
            "level": "INFO", "request": number(answer.header("x-request-id")), "method": "POST",
            "route": "/api/chat", "client": client, "session": session, "status": 200,
            "bytes": answer.bytes().len(), "end": "complete",
        })
    );
    let listed = world.get(&format!("/api/sessions/{}", session.as_str().unwrap())).with("cookie", &cookie);
    listed.send().await;
    let line = lines.request("/api/sessions/{id}").await;
    assert_eq!((&line["session"], &line["client"]), (&session, &json!(client)), "the route, not the path");
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    for stream in [true, false] {
        let body = json!({ "stream": stream, "messages": body["messages"] });
        assert_eq!(world.post("/v1/chat/completions", &body).send().await.status, 200);
    }
    let answered = lines.all().into_iter().filter(|line| line["route"] == "/v1/chat/completions");
    assert_eq!(answered.filter(|line| line["session"].is_string()).count(), 2);
}

#[tokio::test]
async fn a_stream_that_its_client_leaves_is_told_from_one_that_ends() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let world = World::new().await;
    let mut open = world.post("/api/chat", &json!({ "message": "wait" })).open().await;
    open.until("You said").await;
    assert!(!lines.text().contains("/api/chat"), "it goes on");
    drop(open);
    let line = lines.request("/api/chat").await;
    assert_eq!((&line["end"], &line["status"]), (&json!("client_left"), &json!(200)));
    assert!(line["bytes"].as_u64().unwrap() > 0 && line["session"].is_string(), "{line}");
}

#[tokio::test]
async fn the_line_of_a_call_is_written_when_the_call_ends() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let ticket = world.ask("POST", "/api/voice/ticket").with("cookie", &cookie).send().await.json();
    let ticket = ticket["ticket"].as_str().unwrap().to_owned();
    let mut page = Page::open(&world, &format!("/voice?ticket={ticket}"), &[]).await;
    let ready = page.start(json!({})).await;
    assert!(!lines.text().contains("\"/voice\""), "the call goes on");
    page.send_json(&json!({ "type": "stop" })).await;
    page.ending().await;
    let line = lines.request("/voice").await;
    assert!(line["bytes"].as_u64().unwrap() > 100, "{line}");
    let mut line = without_times(line);
    let (bytes, request) = (line["bytes"].take(), line["request"].take());
    assert!(bytes.is_u64() && request.is_u64());
    assert_eq!(
        line,
        json!({
            "level": "INFO", "request": null, "method": "GET", "route": "/voice", "client": client,
            "session": ready["sessionId"], "status": 101, "bytes": null, "end": "complete",
        })
    );
    assert!(!lines.text().contains(&ticket));
    assert!(!lines.text().contains(ready["resumeToken"].as_str().unwrap()));
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_told_from_one_that_ends() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let world = World::new().await;
    let cookie = world.new_client().await;
    let (page, _) = Page::calling(&world, &cookie).await;
    drop(page);
    assert_eq!(lines.request("/voice").await["end"], "client_left");
}

#[tokio::test]
async fn a_refused_origin_has_its_line_and_the_remedy_once() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let settings = Settings { origins: vec!["https://a.example".into()], ..Settings::default() };
    let world = World::with(settings).await;
    let ask = || world.get("/api/me?secret=sesame").with("origin", "https://shop.example");
    let answer = ask().send().await;
    assert_eq!(
        without_times(lines.request("/api/me").await),
        json!({
            "level": "INFO", "request": number(answer.header("x-request-id")), "method": "GET",
            "route": "/api/me", "origin": "https://shop.example", "status": 403,
            "bytes": answer.bytes().len(), "end": "complete",
        })
    );
    for _ in 0..20 {
        ask().send().await;
    }
    let refused: Vec<Value> =
        lines.all().into_iter().filter(|line| line["message"] == "origin refused").collect();
    assert_eq!(refused.len(), 1, "the others are counted");
    assert_eq!(refused[0]["level"], "WARN");
    assert_eq!(refused[0]["origin"], "https://shop.example");
    assert_eq!(refused[0]["add"], r#"[server] origins = ["https://a.example","https://shop.example"]"#);
}

#[tokio::test]
async fn an_unknown_path_has_a_line_without_the_path() {
    let (lines, _guard) = LogLines::collect(Level::INFO);
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let answer = world.get("/sesame/street?key=sesame").with("cookie", &cookie).send().await;
    assert_eq!(
        without_times(lines.request("-").await),
        json!({
            "level": "INFO", "request": number(answer.header("x-request-id")), "method": "GET", "route": "-",
            "client": client, "status": 404, "bytes": answer.bytes().len(), "end": "complete",
        })
    );
}

#[tokio::test]
async fn nothing_secret_is_in_the_log_at_any_level() {
    let (lines, _guard) = LogLines::collect(Level::TRACE);
    let settings = Settings { admin_token: Some("sesame-admin".into()), ..Settings::default() };
    let world = World::with(settings).await;
    let cookie = world.new_client().await;
    let planted = [
        world.get("/api/me?ticket=sesame-query").with("cookie", &cookie),
        world.get("/api/me").with("authorization", "Bearer sesame-bearer"),
        world
            .get("/api/me")
            .with("x-session-token", "sesame-session")
            .with("cookie", "quarterdeck=sesame-cookie"),
        world.get("/api/deck/overview").with("authorization", "Bearer sesame-admin"),
        world.get("/api/sessions/sesame-path"),
        world.get("/voice?ticket=sesame-ticket"),
        world.get("/api/me").with("origin", "https://ann:sesame-origin@shop.example"),
        world.get("/api/me").with("referer", "https://shop.example/?sesame-referer"),
        world.ask("SESAME-METHOD", "/api/me"),
        world.post("/api/chat", &json!({ "message": "sesame-message" })).with("cookie", &cookie),
    ];
    for ask in planted {
        ask.send().await;
    }
    let text = lines.text();
    assert!(text.matches("\"request\"").count() >= 10, "{text}");
    let leaked = text.lines().find(|line| line.to_lowercase().contains("sesame"));
    assert_eq!(leaked, None);
    let cookie = cookie.split_once('=').unwrap().1;
    assert!(!text.contains(cookie), "{cookie}");
}

#[tokio::test]
async fn probes_metrics_and_files_are_logged_at_debug_alone() {
    for (level, expected) in [(Level::WARN, 0), (Level::INFO, 1), (Level::DEBUG, 6)] {
        let (lines, _guard) = LogLines::collect(level);
        let world = World::new().await;
        for path in ["/healthz", "/readyz", "/metrics", "/embed.js", "/api/deck/overview", "/api/me"] {
            assert_eq!(world.get(path).send().await.status, 200, "{path}");
        }
        let requests = lines.all().into_iter().filter(|line| line["message"] == "request");
        assert_eq!(requests.count(), expected, "{level}: {}", lines.text());
    }
}
