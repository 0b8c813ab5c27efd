//! The OpenAPI document matches the server.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::World;

/// What in a response does not match the document.
fn undescribed(document: &Value, method: &str, path: &str, answer: &Answer) -> Option<String> {
    let operation = &document["paths"][path][method];
    let mut described = &operation["responses"][answer.status.to_string()];
    if let Some(shared) = described["$ref"].as_str() {
        described = document.pointer(shared.trim_start_matches('#')).unwrap();
    }
    if described.is_null() {
        return Some(format!("{method} {path} gave {}", answer.status));
    }
    let kind = answer.header("content-type")?;
    let media = &described["content"][kind.split(';').next().unwrap()];
    if media.is_null() {
        return Some(format!("{method} {path} gave {kind} with {}", answer.status));
    }
    let errors = match kind {
        "text/event-stream" => {
            let schema = media.pointer("/schema/properties/data/anyOf/1/contentSchema").unwrap();
            let validate = |event| errors(document, schema, &event);
            answer.events().into_iter().flat_map(validate).collect()
        }
        "application/json" => errors(document, &media["schema"], &answer.json()),
        _ => errors(document, &media["schema"], &json!(answer.text())),
    };
    (!errors.is_empty()).then(|| format!("{method} {path}: {errors:?}"))
}

fn errors(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&root).unwrap();
    validator.iter_errors(value).map(|error| format!("{error} in {value}")).collect()
}

async fn document(world: &World) -> Value {
    world.get("/openapi.json").send().await.json()
}

#[tokio::test]
async fn every_described_path_allows_exactly_its_methods() {
    let world = World::new().await;
    for (path, methods) in document(&world).await["paths"].as_object().unwrap() {
        let answer = world.ask("TRACE", &path.replace("{id}", "x")).send().await;
        assert_eq!(answer.status, 405, "{path}");
        let allowed = answer.header("allow").unwrap().to_ascii_lowercase();
        let mut allowed: Vec<&str> = allowed.split(',').filter(|method| *method != "head").collect();
        let mut described: Vec<&str> = methods.as_object().unwrap().keys().map(String::as_str).collect();
        allowed.sort_unstable();
        described.sort_unstable();
        assert_eq!(allowed, described, "{path}");
    }
    assert_eq!(quarterdeck_server::openapi_document(), document(&world).await);
}

#[tokio::test]
async fn every_example_of_a_body_works() {
    let world = World::new().await;
    let document = document(&world).await;
    let mut sent = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(content) = methods["post"]["requestBody"]["content"].get("application/json") else {
            continue;
        };
        for (name, example) in content["examples"].as_object().unwrap() {
            let answer = world.post(path, &example["value"]).send().await;
            // The example's confirmation, answer and alarm do not exist, its version is not stored, no conversation is kept, and the
            // log is the test's.
            let expected = match path.as_str() {
                "/api/confirmations" => 400,
                "/api/deck/versions"
                | "/api/deck/alarms/lift"
                | "/api/deck/log-level"
                | "/api/deck/unanswered/export"
                | "/api/feedback" => 404,
                _ => 200,
            };
            assert_eq!(answer.status, expected, "{path} {name}: {}", answer.text());
            assert_eq!(undescribed(&document, "post", path, &answer), None);
            sent += 1;
        }
    }
    assert_eq!(sent, 16);
}

#[tokio::test]
async fn responses_match_the_description() {
    let world = World::new().await;
    let document = document(&world).await;
    let cookie = world.new_client().await;
    let chat =
        |text: &str| world.post("/api/chat", &json!({ "message": text, "id": "c" })).with("cookie", &cookie);
    let asked = chat("call it").send().await;
    let token = asked.event("data-confirmation")["data"]["token"].clone();
    assert_eq!(undescribed(&document, "post", "/api/chat", &asked), None);
    let decision = json!({ "token": token, "approve": true });
    for _ in 0..2 {
        let decided = world.post("/api/confirmations", &decision).with("cookie", &cookie).send().await;
        assert_eq!(undescribed(&document, "post", "/api/confirmations", &decided), None);
    }
    let spoken = chat("hello").send().await;
    assert_eq!(undescribed(&document, "post", "/api/chat", &spoken), None);
    let ticket = world.ask("POST", "/api/voice/ticket").with("cookie", &cookie).send().await;
    assert_eq!(undescribed(&document, "post", "/api/voice/ticket", &ticket), None);
    assert_eq!(ticket.status, 200);
    let message = spoken.event("start")["messageId"].clone();
    let rating = json!({ "sessionId": "c", "messageId": message, "rating": "up", "comment": "Good." });
    let rated = world.post("/api/feedback", &rating).with("cookie", &cookie).send().await;
    assert_eq!(undescribed(&document, "post", "/api/feedback", &rated), None);
    assert_eq!(rated.status, 200);
    let gets = [
        ("/api/chat/{id}/stream", "c", 204),
        ("/api/sessions/{id}", "c", 200),
        ("/api/sessions/{id}", "none", 404),
        ("/api/sessions", "", 200),
        ("/api/deck/feedback", "", 200),
        ("/api/deck/conversations", "", 200),
        ("/api/deck/conversations/{id}", "none", 404),
        ("/api/deck/unanswered", "", 200),
        ("/api/tools", "", 200),
        ("/api/tools/{id}", "probe", 200),
        ("/api/tools/{id}", "none", 404),
        ("/api/me", "", 200),
        ("/voice", "", 426),
        ("/v1/models", "", 200),
        ("/v1/models/{id}", "quarterdeck", 200),
        ("/v1/models/{id}", "gpt", 404),
        ("/metrics", "", 200),
        ("/healthz", "", 200),
        ("/readyz", "", 200),
        ("/openapi.json", "", 200),
        ("/docs", "", 200),
        ("/deck", "", 200),
        ("/api/deck/overview", "", 200),
        ("/api/deck/series", "", 200),
        ("/api/deck/sessions", "", 200),
        ("/api/deck/sessions/{id}", "none", 404),
        ("/api/deck/audit", "", 200),
        ("/api/deck/registry", "", 200),
        ("/api/deck/blocks", "", 200),
    ];
    for (path, id, status) in gets {
        let answer = world.get(&path.replace("{id}", id)).with("cookie", &cookie).send().await;
        assert_eq!(answer.status, status, "{path} {id}");
        assert_eq!(undescribed(&document, "get", path, &answer), None);
    }
    let deleted = world.ask("DELETE", "/api/sessions/c").with("cookie", &cookie).send().await;
    assert_eq!(undescribed(&document, "delete", "/api/sessions/{id}", &deleted), None);
    for stream in [true, false] {
        let body = json!({
            "messages": [{ "role": "user", "content": "hello" }], "stream": stream,
            "stream_options": { "include_usage": true },
        });
        let answer = world.post("/v1/chat/completions", &body).with("cookie", &cookie).send().await;
        assert_eq!(undescribed(&document, "post", "/v1/chat/completions", &answer), None);
    }
    for kind in ["overloaded", "rejected", "rate_limited", "too_long"] {
        let body = json!({ "messages": [{ "role": "user", "content": format!("fail {kind}") }] });
        let answer = world.post("/v1/chat/completions", &body).with("cookie", &cookie).send().await;
        assert!(answer.status >= 400, "{kind}");
        assert_eq!(undescribed(&document, "post", "/v1/chat/completions", &answer), None, "{kind}");
    }
    for path in ["/api/me", "/readyz", "/api/deck/overview", "/metrics"] {
        let answer = world.get(path).with("cookie", &cookie).send().await;
        assert_eq!(undescribed(&document, "get", path, &answer), None, "{path} while the model fails");
    }
}

#[tokio::test]
async fn the_docs_page_runs_only_its_own_script() {
    let world = World::new().await;
    let page = world.get("/docs").send().await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    let text = page.text();
    assert_eq!(text.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!text.contains("NONCE") && !text.contains("/* SCRIPT */") && !text.contains("http://"));
    assert!(!world.get("/docs").send().await.text().contains(nonce), "a nonce is used once");
}
