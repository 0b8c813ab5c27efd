//! Versions of the registry while clients talk.

use quarterdeck_server::{ApiKey, Identity, Settings};
use serde_json::{Value, json};

use super::{client_with_call, get};
use crate::world::{COOKIE_SECRET, World, bundle};

fn activation(version: &str) -> Value {
    let bundle = bundle(version);
    let json: Value = serde_json::from_str(&bundle.to_json()).unwrap();
    json!({ "digest": bundle.digest(), "bundle": json })
}

/// The version of the registry that a new client's tools are of.
async fn current(world: &World) -> Value {
    world.get("/api/tools").send().await.json()["registryVersion"].clone()
}

#[tokio::test]
async fn a_version_is_activated_compared_and_retired_while_sessions_keep_theirs() {
    let world = World::new().await;
    let (cookie, _, session) = client_with_call(&world).await;
    let first = current(&world).await;
    let activated = world.post("/api/deck/versions", &activation("2.0.0")).send().await;
    assert_eq!(activated.status, 200, "{}", activated.text());
    let second = activated.json()["version"].clone();
    assert_ne!(first, second);
    assert_eq!(current(&world).await, second);
    client_with_call(&world).await;

    let listed = get(&world, "versions").await;
    let versions = listed["versions"].as_array().unwrap();
    for (version, name) in versions.iter().zip([&first, &second]) {
        let counters = &version["counters"];
        assert_eq!((&version["version"], &version["sessions"]), (name, &json!(1)), "{version}");
        assert_eq!((&counters["calls"], &counters["errors"]), (&json!(1), &json!(0)), "{counters}");
        assert_eq!(counters["confirmations"], json!({ "requested": 1, "approved": 1 }));
    }
    let metrics = world.get("/metrics").send().await.json();
    assert_eq!(metrics["versions"][second.as_str().unwrap()]["calls"], 1);

    let retire =
        |name: &Value| world.ask("DELETE", &format!("/api/deck/versions/{}", name.as_str().unwrap())).send();
    assert_eq!(retire(&second).await.refusal().0, 409, "new sessions get it");
    let retired = retire(&first).await.json();
    assert_eq!(retired["isDropped"], false, "a session has it");
    let body = json!({ "message": "call it", "sessionId": session });
    let answer = world.post("/api/chat", &body).with("cookie", &cookie).send().await;
    assert_eq!(answer.status, 200);
    let seen = get(&world, &format!("sessions/{session}")).await;
    assert_eq!(seen["session"]["registryVersion"], first, "{seen}");

    let lines = get(&world, "audit?event=operator").await["lines"].clone();
    let actions: Vec<_> = lines.as_array().unwrap().iter().map(|line| line["action"].clone()).collect();
    assert_eq!(actions, ["retire_version", "activate_version"]);
}

#[tokio::test]
async fn what_cannot_be_activated_is_refused_with_the_way_out() {
    let world = World::new().await;
    let first = current(&world).await;
    let mut altered = activation("2.0.0");
    altered["bundle"]["artifact"]["tools"][0]["summary"] = json!("Something else.");
    let mut other = activation("2.0.0");
    other["digest"] = json!("0".repeat(64));
    let without = json!({ "digest": "0".repeat(64) });
    for (body, status, expected) in [
        (altered, 409, "was altered"),
        (other, 409, "has the digest"),
        (without, 404, "--artifact FILE"),
        (json!({ "digest": "latest" }), 400, "64 hexadecimal digits"),
        (json!({ "digest": "0".repeat(64), "path": "/etc" }), 400, "unknown field"),
        (
            json!({ "digest": "0".repeat(64), "bundle": { "artifact": {}, "files": {} } }),
            409,
            "format version",
        ),
    ] {
        let refused = world.post("/api/deck/versions", &body).send().await;
        let (found, _, message) = refused.refusal();
        assert_eq!(found, status, "{message}");
        assert!(message.contains(expected), "{message}");
    }
    for version in ["2.0.0", "3.0.0"] {
        assert_eq!(world.post("/api/deck/versions", &activation(version)).send().await.status, 200);
    }
    let (status, _, message) = world.post("/api/deck/versions", &activation("4.0.0")).send().await.refusal();
    assert!(status == 409 && message.contains("retire one"), "{message}");
    assert_ne!(current(&world).await, first);
}

#[tokio::test]
async fn a_rollout_is_set_and_a_header_counts_from_a_trusted_key_only() {
    let keys = vec![ApiKey::new("ci", "sesame"), ApiKey::new("desk", "open the door")];
    let identity = Identity::new(COOKIE_SECRET, None, keys);
    let world = World::with_identity(Settings::default(), identity).await;
    let first = current(&world).await;
    let mut loaded = activation("2.0.0");
    loaded["onlyLoad"] = json!(true);
    let second = world.post("/api/deck/versions", &loaded).send().await.json()["version"].clone();
    assert_eq!(current(&world).await, first, "it is only loaded");
    let set = world.post("/api/deck/rollout", &json!({ "headerFrom": ["ci"], "rest": first })).send().await;
    assert_eq!(set.json()["rollout"]["rest"], get(&world, "versions").await["versions"][0]["digest"]);
    let asking = async |key: &str, version: &Value| {
        let ask = world.get("/api/tools").with("x-quarterdeck-version", version.as_str().unwrap());
        ask.with("authorization", &format!("Bearer {key}")).send().await
    };
    assert_eq!(asking("sesame", &second).await.json()["registryVersion"], second);
    assert_eq!(asking("open the door", &second).await.json()["registryVersion"], first);
    let anonymous = world.get("/api/tools").with("x-quarterdeck-version", second.as_str().unwrap());
    assert_eq!(anonymous.send().await.json()["registryVersion"], first);
    let (status, _, message) = asking("sesame", &json!("1.0.unknown")).await.refusal();
    assert!(status == 400 && message.contains("registry list"), "{message}");
    let chat = world.post("/api/chat", &json!({ "message": "hello" })).with("authorization", "Bearer sesame");
    assert_eq!(chat.with("x-quarterdeck-version", "1.0.unknown").send().await.refusal().0, 400);

    for (rules, status) in [
        (json!({ "shares": [{ "percent": 101, "version": first }] }), 400),
        (
            json!({ "shares": [{ "percent": 60, "version": first }, { "percent": 60, "version": second }] }),
            409,
        ),
        (json!({ "rest": "1.0.unknown" }), 404),
        (json!({ "claims": [{ "claim": "=", "version": first }] }), 409),
        (json!([]), 400),
    ] {
        assert_eq!(world.post("/api/deck/rollout", &rules).send().await.refusal().0, status, "{rules}");
    }
}
