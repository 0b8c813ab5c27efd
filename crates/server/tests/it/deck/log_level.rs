//! Changing the level of the log while the server runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarterdeck_server::{LogFilter, LogLevels, Settings};
use serde_json::{Value, json};

use crate::world::World;

/// Keeps what was installed, and knows one word that is none.
#[derive(Default)]
struct Installed(Mutex<Vec<String>>);

impl LogFilter for Installed {
    fn install(&self, filter: &str) -> Result<String, String> {
        if filter == "loud" {
            return Err("`loud` is no level; write one of off, error, warn.".to_owned());
        }
        self.0.lock().unwrap().push(filter.to_owned());
        Ok(filter.to_owned())
    }
}

async fn world(settings: Settings) -> (World, Arc<Installed>) {
    let installed = Arc::new(Installed::default());
    let levels = LogLevels::new(installed.clone(), "info".into());
    (World::with_log_levels(settings, levels).await, installed)
}

async fn set(world: &World, body: Value) -> Value {
    let answer = world.post("/api/deck/log-level", &body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The filters of the lines of an action in the trail, oldest first.
async fn recorded(world: &World, action: &str) -> Vec<Value> {
    let lines = world.get("/api/deck/audit?limit=50").send().await.json();
    let lines = lines["lines"].as_array().unwrap().clone();
    let found = lines.into_iter().rev().filter(|line| line["action"] == action);
    found.map(|line| line["filter"].clone()).collect()
}

#[tokio::test]
async fn a_level_is_changed_shown_and_put_back_and_each_change_is_audited() {
    let (world, installed) = world(Settings::default()).await;
    let shown = world.get("/api/deck/log-level").send().await.json();
    assert_eq!(shown, json!({ "filter": "info", "lasting": "info", "configured": "info", "untilMs": null }));
    assert_eq!(set(&world, json!({ "filter": "debug" })).await["lasting"], "debug");
    assert_eq!(set(&world, json!({})).await["filter"], "info");
    assert_eq!(*installed.0.lock().unwrap(), ["debug", "info"]);
    assert_eq!(recorded(&world, "log_level").await, ["debug", "info"]);
}

#[tokio::test]
async fn a_level_for_a_while_reverts_to_what_lasts_and_a_later_one_replaces_it() {
    let (world, installed) = world(Settings::default()).await;
    set(&world, json!({ "filter": "warn" })).await;
    set(&world, json!({ "filter": "trace", "forSeconds": 1 })).await;
    let view = set(&world, json!({ "filter": "debug", "forSeconds": 2 })).await;
    assert_eq!((&view["filter"], &view["lasting"]), (&json!("debug"), &json!("warn")));
    assert!(view["untilMs"].is_u64());
    let mut shown = view;
    for _ in 0..300 {
        if shown["untilMs"].is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        shown = world.get("/api/deck/log-level").send().await.json();
    }
    assert_eq!(shown["filter"], "warn");
    assert_eq!(
        *installed.0.lock().unwrap(),
        ["warn", "trace", "debug", "warn"],
        "the timer of the first has ended"
    );
    assert_eq!(recorded(&world, "log_level_reverted").await, ["warn"]);
}

#[tokio::test]
async fn a_wrong_filter_changes_nothing_and_says_what_is_allowed() {
    let (world, installed) = world(Settings::default()).await;
    for (body, words) in [
        (json!({ "filter": "loud" }), "`loud` is no level"),
        (json!({ "filter": "debug", "forSeconds": 0 }), "`forSeconds` is 1 to 86400"),
        (json!({ "filter": "debug", "forSeconds": 86_401 }), "`forSeconds` is 1 to 86400"),
        (json!({ "filter": "x".repeat(1_001) }), "at most 1000 bytes"),
        (json!({ "level": "debug" }), "unknown field `level`"),
    ] {
        let refused = world.post("/api/deck/log-level", &body).send().await.refusal();
        assert_eq!((refused.0, &*refused.1), (400, "VALIDATION"), "{body}");
        assert!(refused.2.contains(words), "{}", refused.2);
    }
    assert!(installed.0.lock().unwrap().is_empty());
    assert_eq!(recorded(&world, "log_level").await, [Value::Null; 0]);
}

#[tokio::test]
async fn only_operators_change_the_level() {
    let settings = Settings { admin_token: Some("sesame".into()), ..Settings::default() };
    let (world, installed) = world(settings).await;
    let ask = || world.post("/api/deck/log-level", &json!({ "filter": "debug" }));
    assert_eq!(ask().send().await.refusal().0, 403);
    assert!(installed.0.lock().unwrap().is_empty());
    assert_eq!(ask().with("authorization", "Bearer sesame").send().await.status, 200);
}
