//! What the page learns of the models.

use quarterdeck_server::LocalServer;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn model_servers_of_this_machine_are_offered_as_they_come_and_go() {
    let world = World::new().await;
    let offered = async || world.get("/api/me").send().await.json()["localServers"].clone();
    assert_eq!(offered().await, json!([]));
    world.app.set_local_servers(vec![LocalServer {
        name: "Ollama".into(),
        url: "http://127.0.0.1:11434/v1".into(),
        models: vec!["qwen3:8b".into()],
        variable: "QUARTERDECK_TEXT__MODEL=ollama/qwen3:8b".into(),
    }]);
    let expected = json!([{
        "name": "Ollama",
        "url": "http://127.0.0.1:11434/v1",
        "models": ["qwen3:8b"],
        "variable": "QUARTERDECK_TEXT__MODEL=ollama/qwen3:8b",
    }]);
    assert_eq!(offered().await, expected);
    world.app.set_local_servers(Vec::new());
    assert_eq!(offered().await, json!([]));
}
