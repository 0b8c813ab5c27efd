//! A trace that begins at an MCP client and goes on at an MCP server elsewhere.

use std::process::{Command, Stdio};

use quarterdeck_testkit::tree;
use serde_json::{Value, json};

use super::receiver::{Receiver, assert_sound, of_name, text, traceparent};
use super::{PARENT, variables};
use crate::mcp_server::ScriptedServer;
use crate::serve::Server;
use crate::terminal::quarterdeck;

/// A call as a client of the newer generation makes it, within a span of its own.
fn call_request() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": PARENT,
    });
    let params = json!({ "name": "list_issues", "arguments": {}, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[test]
fn trace_of_an_mcp_client_goes_on_at_the_server_of_an_imported_tool() {
    let Some(receiver) = Receiver::start() else { return };
    let files = tree("//- quarterdeck.toml\n[server]\nlisten = \"127.0.0.1:0\"\n");
    let forge = ScriptedServer::start(json!([{
        "name": "list_issues",
        "description": "Lists the open issues.",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "annotations": { "readOnlyHint": true }
    }]));
    let (url, address) = (forge.url(), forge.address());
    for arguments in
        [&["mcp", "add", "forge", "--url", &url, "--private-host", &address][..], &["mcp", "import", "forge"]]
    {
        let output = quarterdeck(files.path(), arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarterdeck"));
    command.arg("serve").current_dir(files.path()).envs(variables(&receiver.url()));
    let mut server = Server::begin(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()));
    drop(server.collect_log());

    let headers = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
                   mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: list_issues\r\n";
    let (status, _, answer) = server.ask("POST", "/mcp", headers, &call_request().to_string());
    assert!(status == 200 && answer.contains("did"), "{status} {answer}");

    let spans = receiver.wait_for("span", |spans| !of_name(spans, "tools/call").is_empty());
    assert_sound(&spans);
    let call = of_name(&spans, "tools/call list_issues")[0];
    assert_eq!((text(call, "kind"), &call["error"]), ("SERVER", &json!(false)), "{call:#}");
    assert_eq!((text(call, "trace"), text(call, "parent")), (&PARENT[3..35], &PARENT[36..52]));
    assert_eq!(call["attributes"]["mcp.method.name"], "tools/call");
    assert_eq!(call["attributes"]["quarterdeck.channel"], "mcp");
    let sent: Vec<_> =
        forge.calls.lock().unwrap().iter().map(|params| params["_meta"]["traceparent"].clone()).collect();
    assert_eq!(sent, [json!(traceparent(call))], "the server goes on within the call");
    receiver.wait_for("metric", |metrics| !of_name(metrics, "mcp.server.operation.duration").is_empty());
}
