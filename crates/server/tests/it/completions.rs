//! The OpenAI API.

use std::time::Duration;

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_completion_is_created_at_the_time_of_the_clock() {
    let world = World::new().await;
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    let created = || async {
        let completion = world.post("/v1/chat/completions", &body).send().await.json();
        completion["created"].as_u64().unwrap()
    };
    let before = created().await;
    world.advance_clock(Duration::from_secs(86_400));
    let after = created().await;
    assert!((86_400..86_460).contains(&(after - before)), "{before} {after}");
}
