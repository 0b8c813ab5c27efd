//! A client's message, as far as passing it on needs to know it.

use quarterdeck_contracts::parse_json;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// The handshake of the older generation.
    Initialize,
    Request,
    Notification,
    /// The answer to a question of the server.
    Response,
}

/// One line of the client.
#[derive(Debug, Clone)]
pub(super) struct ClientMessage {
    pub(super) kind: MessageKind,
    pub(super) body: Value,
}

impl ClientMessage {
    /// A line that is not a JSON object has the reason why.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let body = parse_json(line).map_err(|error| error.to_string())?;
        if !body.is_object() {
            return Err("a message is a JSON object".to_owned());
        }
        let kind = match (body.get("method").and_then(Value::as_str), body.get("id")) {
            (Some("initialize"), Some(_)) => MessageKind::Initialize,
            (Some(_), Some(_)) => MessageKind::Request,
            (Some(_), None) => MessageKind::Notification,
            (None, _) => MessageKind::Response,
        };
        Ok(Self { kind, body })
    }

    pub(super) fn id(&self) -> Option<&Value> {
        self.body.get("id")
    }

    pub(super) fn method(&self) -> &str {
        self.body.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    /// The id of the request that this cancels.
    pub(super) fn cancelled_id(&self) -> Option<&Value> {
        (self.method() == "notifications/cancelled").then(|| self.body.pointer("/params/requestId")).flatten()
    }

    /// The version that the message itself names, as each does of the newer generation.
    pub(super) fn own_version(&self) -> Option<&str> {
        self.body.get("params")?.get("_meta")?.get(VERSION_KEY)?.as_str()
    }

    /// The headers that repeat what the body says, for messages of the newer generation.
    pub(super) fn standard_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(version) = self.own_version() else { return headers };
        let mut put = |name: HeaderName, text: &str| {
            if let Some(value) = header_value(text) {
                headers.insert(name, value);
            }
        };
        put(VERSION_HEADER, version);
        put(METHOD_HEADER, self.method());
        if let Some(name) = self.routing_name() {
            put(NAME_HEADER, name);
        }
        headers
    }

    fn routing_name(&self) -> Option<&str> {
        let key = match self.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.body.get("params")?.get(key)?.as_str()
    }

    /// The answer to a request that could not be passed on.
    pub(super) fn failure(&self, code: i64, message: &str) -> Option<Value> {
        if self.kind == MessageKind::Notification || self.kind == MessageKind::Response {
            return None;
        }
        Some(error_answer(self.id().cloned().unwrap_or_default(), code, message))
    }
}

pub(super) fn error_answer(id: Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// A text as the value of a header, in base64 where it would not pass as it is.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if is_plain && !text.starts_with("=?base64?") {
        return HeaderValue::from_str(text).ok();
    }
    let encoded = base64_simd::STANDARD.encode_to_string(text);
    HeaderValue::from_str(&format!("=?base64?{encoded}?=")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(line: &str) -> Vec<(String, String)> {
        let headers = ClientMessage::parse(line).unwrap().standard_headers();
        let shown = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers.iter().map(|(name, value)| (name.to_string(), shown(value))).collect()
    }

    #[test]
    fn a_message_of_the_newer_generation_has_headers_that_repeat_it() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"kb_search",{meta}}}}}"#);
        let expected =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "kb_search")];
        assert_eq!(headers(&call), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let read = format!(r#"{{"id":1,"method":"resources/read","params":{{"uri":"kb://å",{meta}}}}}"#);
        assert_eq!(headers(&read)[2].1, "=?base64?a2I6Ly/DpQ==?=");
        assert_eq!(headers(r#"{"id":1,"method":"tools/call","params":{"name":"kb_search"}}"#), []);
    }

    #[test]
    fn only_requests_are_answered_with_a_failure() {
        let kind = |line: &str| ClientMessage::parse(line).unwrap();
        assert_eq!(kind(r#"{"id":1,"method":"initialize"}"#).kind, MessageKind::Initialize);
        assert_eq!(kind(r#"{"id":1,"result":{}}"#).failure(-1, "x"), None);
        assert_eq!(kind(r#"{"method":"notifications/cancelled"}"#).failure(-1, "x"), None);
        let failure = kind(r#"{"id":"a","method":"ping"}"#).failure(-32000, "x").unwrap();
        assert_eq!((&failure["id"], &failure["error"]["code"]), (&json!("a"), &json!(-32000)));
        for line in ["", "[]", "7", r#"{"id":1,"id":2}"#] {
            assert!(ClientMessage::parse(line).is_err(), "{line}");
        }
    }
}
