//! A call that the user approves: two spans with a link, and what is asked of others within the second.

use serde_json::{Value, json};

use super::receiver::{Receiver, assert_sound, of_name, text, traceparent};
use super::recording_service::RecordingService;
use super::variables;
use crate::serve::{ANYWHERE, Server, command, say};

/// Where the port of the service stands.
const HANDLER: &str = "export async function execute() {
  await fetch('http://localhost:PORT/orders', { method: 'POST', body: '{}' });
  return { ok: true, data: null };
}
";

fn write_tool(tools: &std::path::Path, port: u16) {
    let schema = json!({
        "toolId": "place_order", "version": "1.0.0", "description": "Places an order.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true,
        "allowedModes": ["text"], "latencyBudgetMs": 500, "network": ["localhost"],
        "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
    });
    let folder = tools.join("place-order");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    std::fs::write(folder.join("guide.md"), "# Order\n\nPlaces an order. Use it when testing.\n").unwrap();
    std::fs::write(folder.join("handler.js"), HANDLER.replace("PORT", &port.to_string())).unwrap();
}

/// The calls of the turn that waits, as the page sends them back.
fn approval(parts: &[Value]) -> Value {
    let asked = parts.iter().find(|part| part["type"] == "data-confirmation").expect("it asks");
    let approval = json!({ "id": asked["data"]["token"], "approved": true });
    let part = json!({ "type": "tool-place_order", "state": "approval-responded", "approval": approval });
    json!([{ "id": "m1", "role": "assistant", "parts": [part] }])
}

#[test]
fn approved_call_has_a_second_span_with_a_link_and_everything_asked_of_others_has_its_span() {
    let Some(receiver) = Receiver::start() else { return };
    let order = json!({ "index": 0, "id": "call_0123456789", "type": "function",
        "function": { "name": "place_order", "arguments": "{}" } });
    let service = RecordingService::start(vec![json!({ "tool_calls": [order] })]);
    let folder = tempfile::tempdir().unwrap();
    let (tools, config) = (folder.path().join("tools"), folder.path().join("quarterdeck.toml"));
    write_tool(&tools, service.port);
    let private = format!("[tools.place_order]\nprivate_hosts = [\"localhost:{}\"]\n", service.port);
    std::fs::write(&config, private).unwrap();
    let mut command = command(&folder.path().join("data"), ANYWHERE);
    command.arg("--tools").arg(&tools).arg("--config").arg(&config).envs(variables(&receiver.url()));
    command.env("OPENAI_BASE_URL", service.base_url()).env("QUARTERDECK_TEXT__MODEL", "model");
    let mut server = Server::begin(&mut command);
    drop(server.collect_log());

    let (cookie, parts) = say(&server, "", json!({ "id": "c", "message": "Order it." }));
    let (_, parts) = say(&server, &cookie, json!({ "id": "c", "messages": approval(&parts) }));
    assert!(parts.iter().any(|part| part["delta"] == "Done."), "{parts:#?}");

    let spans = receiver.wait_for("span", |spans| of_name(spans, "invoke_agent").len() == 2);
    assert_sound(&spans);
    let turns = of_name(&spans, "invoke_agent");
    let endings: Vec<_> = turns.iter().map(|turn| &turn["attributes"]["quarterdeck.turn.ending"]).collect();
    assert_eq!(endings, ["waiting", "answered"]);
    let [asked, approved] = of_name(&spans, "execute_tool place_order")[..] else { panic!("{spans:#?}") };
    assert_eq!((&asked["parent"], &approved["parent"]), (&turns[0]["id"], &turns[1]["id"]));
    assert_ne!(asked["trace"], approved["trace"], "the wait is in no trace");
    assert_eq!(asked["links"], json!([]));
    assert_eq!(approved["links"], json!([{ "trace": asked["trace"], "id": asked["id"] }]));
    let decision = |span: &Value| text(&span["attributes"], "quarterdeck.policy.decision").to_owned();
    assert_eq!((decision(asked).as_str(), decision(approved).as_str()), ("asked", "approved"));
    let id = text(&asked["attributes"], "quarterdeck.approval.id");
    assert!(!id.is_empty() && text(&approved["attributes"], "quarterdeck.approval.id") == id, "{approved:#}");
    assert!(approved["attributes"]["quarterdeck.approval.wait"].is_f64(), "{approved:#}");

    assert_eq!(service.web_traceparents(), [Some(traceparent(approved))], "the handler's fetch");
    let requests: Vec<_> =
        of_name(&spans, "chat model").into_iter().map(|span| Some(traceparent(span))).collect();
    assert_eq!((requests.len(), service.model_traceparents()), (2, requests), "the model's requests");
}
