//! Events of the provider.

use serde_json::{Value, json};

/// An error that does not end the session.
pub(super) fn error(code: &str, message: &str) -> Value {
    let error = json!({
        "type": "invalid_request_error", "code": code, "message": message, "param": null, "event_id": null,
    });
    json!({ "type": "error", "error": error })
}

/// An event of an active response.
pub(super) fn about(kind: &str, response: &str, item: &str, more: &Value) -> Value {
    let mut event = json!({ "type": kind, "response_id": response, "item_id": item, "output_index": 0 });
    for (name, value) in more.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    event
}

/// The end of a response.
pub(super) fn done(response: &str, status: &str, details: &Value, output: &[Value]) -> Value {
    let usage = json!({ "total_tokens": 150, "input_tokens": 120, "output_tokens": 30 });
    json!({ "type": "response.done", "response": {
        "id": response, "object": "realtime.response", "status": status, "status_details": details,
        "output": output, "usage": usage,
    } })
}
