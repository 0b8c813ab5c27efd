//! A client of 2026-07-28: every request stands for itself.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use quarterdeck_mcp_server::{ApprovalPages, McpCaller, McpHttp};
use quarterdeck_runtime::Client;
use serde_json::{Map, Value, json};

use crate::world::World;

/// Where the pages are, for those who have any.
pub(crate) const PAGES: &str = "http://127.0.0.1:8080/approvals";

#[derive(Clone)]
pub(crate) struct Poster {
    http: McpHttp,
    caller: McpCaller,
    capabilities: Value,
    has_pages: bool,
}

impl Poster {
    pub(crate) fn new(world: &World, client: &str, capabilities: Value) -> Self {
        let caller = McpCaller::Known(Client::anonymous(client));
        Self { http: McpHttp::new(world.server.clone()), caller, capabilities, has_pages: false }
    }

    pub(crate) fn with_pages(self) -> Self {
        Self { has_pages: true, ..self }
    }

    pub(crate) fn with_caller(self, caller: McpCaller) -> Self {
        Self { caller, ..self }
    }

    /// Calls a tool. `more` is added to the parameters, and `meta` to their `_meta`.
    pub(crate) async fn call(&self, tool: &str, args: Value, more: Value, meta: Value) -> Value {
        let mut params = json!({ "name": tool, "arguments": args });
        params.as_object_mut().unwrap().extend(object(more));
        self.post("tools/call", Some(tool), params, meta).await
    }

    pub(crate) async fn post(
        &self,
        method: &str,
        name: Option<&str>,
        mut params: Value,
        meta: Value,
    ) -> Value {
        let mut all = object(meta);
        all.extend(object(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        })));
        params["_meta"] = Value::Object(all);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = Request::post("http://127.0.0.1:8080/mcp")
            .header("host", "127.0.0.1:8080")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let mut request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        request.extensions_mut().insert(self.caller.clone());
        if self.has_pages {
            request.extensions_mut().insert(ApprovalPages { base_url: PAGES.to_owned() });
        }
        let response = self.http.handle(request).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        last_message(std::str::from_utf8(&body).unwrap())
    }
}

/// The response: the last event of a stream, or the whole body.
fn last_message(body: &str) -> Value {
    let mut events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let last = events.rfind(|event| !event.trim().is_empty()).unwrap_or(body);
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{body}"))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
