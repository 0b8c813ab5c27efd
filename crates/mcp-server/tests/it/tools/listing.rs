//! `tools/list`.

use expect_test::expect;
use quarterdeck_mcp_server::McpCaller;
use quarterdeck_runtime::Client;
use quarterdeck_runtime::gates::ClientFacts;
use serde_json::json;

use super::client::{BOTH, Generation};
use super::world::World;

#[tokio::test]
async fn a_client_sees_what_it_may_use_in_writing_in_a_stable_order() {
    let world = World::new();
    for generation in BOTH {
        let client = world.connect("ann", generation).await;
        let names: Vec<_> =
            client.service.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["book", "book_slowly", "echo", "pay", "steps", "wait"], "{generation:?}");
    }
}

#[tokio::test]
async fn a_tool_has_its_title_its_hints_and_its_schemas() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    let tools = client.service.list_all_tools().await.unwrap();
    let shown = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        format!("{:#}\n", json!(tool))
    };
    expect![[r#"
        {
          "name": "echo",
          "title": "Echo",
          "description": "Does what it is told.",
          "inputSchema": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
              "what": {
                "type": "string",
                "maxLength": 100,
                "description": "What."
              }
            }
          },
          "outputSchema": {
            "type": "object",
            "required": [
              "said"
            ],
            "properties": {
              "said": {
                "type": "string"
              }
            }
          },
          "annotations": {
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false
          }
        }
    "#]]
    .assert_eq(&shown("echo"));
    expect![[
        r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":false}"#
    ]]
    .assert_eq(&json!(tools.iter().find(|tool| tool.name == "pay").unwrap().annotations).to_string());
}

#[tokio::test]
async fn a_list_says_how_long_it_is_fresh_and_for_whom() {
    let world = World::new();
    let client = world.connect("ann", Generation::Stateless).await;
    let list = client.service.list_tools(None).await.unwrap();
    assert_eq!(list.ttl_ms, Some(60_000));
    assert_eq!(json!(list.cache_scope), "private");
}

#[tokio::test]
async fn a_tool_for_members_is_shown_to_members() {
    let world = World::new();
    let facts = ClientFacts { authenticated: true, ..ClientFacts::default() };
    let caller = McpCaller::Known(Client::known("sub:bob", facts.into()));
    let client = world.connect_as(caller, Generation::Handshake).await.unwrap();
    let tools = client.service.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "members"));
}
