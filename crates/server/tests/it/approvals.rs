//! Calls of MCP clients that cannot ask, approved on a page.

use quarterdeck_server::{ApiKey, Identity, Settings};
use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::{COOKIE_SECRET, World};

/// Calls the tool that needs approval.
async fn call(world: &World, key: Option<&str>) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "probe", "arguments": { "do": "it" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    } });
    let mut ask = world
        .post("/mcp", &body)
        .with("accept", "application/json, text/event-stream")
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/call")
        .with("mcp-name", "probe");
    if let Some(key) = key {
        ask = ask.with("authorization", &format!("Bearer {key}"));
    }
    let answer = ask.send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["result"].clone()
}

/// The path of the page that a refusal names.
fn page(world: &World, result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let base = format!("http://{}", world.address);
    let (_, rest) = text.split_once(&base).unwrap_or_else(|| panic!("{text}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

/// Sends a form as a browser does that shows the page.
async fn send(world: &World, path: &str, fields: &[(&str, &str)]) -> Answer {
    send_from(world, path, fields, Some(&format!("http://{}", world.address))).await
}

async fn send_from(world: &World, path: &str, fields: &[(&str, &str)], origin: Option<&str>) -> Answer {
    let form = fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let ask = world.ask("POST", path).with("content-type", "application/x-www-form-urlencoded").body(form);
    match origin {
        Some(origin) => ask.with("origin", origin).send().await,
        None => ask.send().await,
    }
}

/// The value of a hidden field.
fn field(page: &Answer, name: &str) -> String {
    let text = page.text();
    let (_, rest) = text.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{text}"));
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn at_this_machine_a_call_is_approved_on_its_page_and_runs_once() {
    let world = World::new().await;
    let path = page(&world, &call(&world, None).await);
    let shown = world.get(&path).send().await;
    assert_eq!(shown.status, 200);
    assert!(shown.text().contains("&quot;do&quot;: &quot;it&quot;"), "{}", shown.text());
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert!(!shown.text().contains("qdc_"), "no token is on the page");
    // Reading the page decides nothing.
    assert_eq!(call(&world, None).await["isError"], true);
    let proof = field(&shown, "proof");
    let approved = send(&world, &path, &[("decision", "approve"), ("client", ""), ("proof", &proof)]).await;
    assert!(approved.status == 200 && approved.text().contains("Approved"), "{}", approved.text());
    assert_eq!(call(&world, None).await["structuredContent"], json!({ "did": "it" }));
    assert_ne!(page(&world, &call(&world, None).await), path, "the next one is asked about again");
    assert_eq!(world.get(&path).send().await.status, 404);
}

#[tokio::test]
async fn a_form_counts_only_from_the_page_that_was_shown() {
    let world = World::new().await;
    let path = page(&world, &call(&world, None).await);
    let proof = field(&world.get(&path).send().await, "proof");
    let approve = [("decision", "approve"), ("client", ""), ("proof", proof.as_str())];
    // A program, another site, a page that was never read, another page, and another client.
    assert_eq!(send_from(&world, &path, &approve, None).await.status, 400);
    assert_eq!(send_from(&world, &path, &approve, Some("https://evil.example")).await.status, 403);
    for wrong in [
        &[("decision", "approve")][..],
        &[("decision", "approve"), ("client", ""), ("proof", "00")],
        &[("decision", "approve"), ("client", "c_1"), ("proof", &proof)],
    ] {
        assert_eq!(send(&world, &path, wrong).await.status, 403, "{wrong:?}");
    }
    assert_eq!(send(&world, "/approvals/0", &approve).await.status, 403);
    assert_eq!(call(&world, None).await["isError"], true, "nothing was approved");
    let denied = send(&world, &path, &[("decision", "deny"), ("client", ""), ("proof", &proof)]).await;
    assert!(denied.text().contains("Denied"), "{}", denied.text());
    let told = call(&world, None).await;
    assert!(told["content"][0]["text"].as_str().unwrap().contains("did not approve"), "{told}");
}

#[tokio::test]
async fn elsewhere_the_user_of_the_client_shows_its_key_first() {
    let keys = vec![ApiKey::new("ann", "key-of-ann-0001"), ApiKey::new("bob", "key-of-bob-0001")];
    let identity = Identity::new(COOKIE_SECRET, None, keys);
    let settings = Settings { is_loopback: false, ..Settings::default() };
    let world = World::with_identity(settings, identity).await;
    let path = page(&world, &call(&world, Some("key-of-ann-0001")).await);
    let stranger = world.get(&path).send().await;
    assert_eq!(stranger.status, 403);
    assert!(!stranger.text().contains("probe") && stranger.text().contains("name=\"key\""));
    for wrong in ["key-of-bob-0001", "key-of-carol-001", ""] {
        let refused = send(&world, &path, &[("decision", "show"), ("key", wrong)]).await;
        assert!(refused.status == 403 && !refused.text().contains("probe"), "{wrong}");
    }
    let shown = send(&world, &path, &[("decision", "show"), ("key", "key-of-ann-0001")]).await;
    assert!(shown.status == 200 && shown.text().contains("probe"), "{}", shown.text());
    let (client, proof) = (field(&shown, "client"), field(&shown, "proof"));
    let as_machine = send(&world, &path, &[("decision", "approve"), ("client", ""), ("proof", &proof)]).await;
    assert_eq!(as_machine.status, 403);
    let approve = [("decision", "approve"), ("client", client.as_str()), ("proof", proof.as_str())];
    assert_eq!(send(&world, &path, &approve).await.status, 200);
    assert_eq!(call(&world, Some("key-of-bob-0001")).await["isError"], true);
    assert_eq!(call(&world, Some("key-of-ann-0001")).await["structuredContent"], json!({ "did": "it" }));
}
