//! Requests are counted by method and by how they end.

use serde_json::json;

use crate::pipe::Pipe;
use crate::post::Poster;
use crate::world::World;

#[tokio::test]
async fn requests_of_both_generations_are_counted_by_method_and_outcome() {
    let world = World::new();
    let mut pipe = Pipe::open(&world, "ann", json!({ "elicitation": {} })).await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "look", "arguments": { "what": "here" } })),
        ("tools/call", json!({ "name": "nothing", "arguments": {} })),
        ("made/up", json!({})),
    ] {
        let id = pipe.request(method, params).await;
        pipe.answer(id).await;
    }
    let call = pipe.call("pay", json!({ "what": "rent" })).await;
    let question = pipe.message("elicitation/create").await;
    pipe.reply(&question, json!({ "action": "decline" })).await;
    pipe.answer(call).await;

    let poster = Poster::new(&world, "ben", json!({ "elicitation": {} }));
    let asked = poster.call("pay", json!({ "what": "rent" }), json!({}), json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    poster.post("server/discover", None, json!({}), json!({})).await;

    let requests = world.orchestrator.metrics().json()["mcp"]["requests"].take();
    assert_eq!(
        requests,
        json!({
            "initialize": { "ok": 1 },
            "server/discover": { "ok": 1 },
            "ping": { "ok": 1 },
            "tools/list": { "ok": 1 },
            "tools/call": { "ok": 1, "tool_error": 1, "input_required": 1, "error": 1 },
            "other": { "error": 1 },
        })
    );
}
