//! A line of the audit log as an event of the Open Cybersecurity Schema Framework: class API Activity.
//!
//! docs/OPERATIONS.md has the mapping. Fields that have no attribute there are under `unmapped`, and the line itself is
//! `raw_data`, so that its hash can still be checked.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The version of the schema that events follow.
const SCHEMA_VERSION: &str = "1.3.0";
/// API Activity, of the category Application Activity.
const CLASS: (u64, &str) = (6003, "API Activity");
const CATEGORY: (u64, &str) = (6, "Application Activity");
/// Activities of the class.
const READ: (u64, &str) = (2, "Read");
const OTHER: u64 = 99;
/// Severities.
const INFORMATIONAL: u64 = 1;
const HIGH: u64 = 4;

/// Fields that become attributes; all others are `unmapped`.
const MAPPED: [&str; 16] = [
    "seq",
    "hash",
    "event",
    "time",
    "sessionId",
    "clientId",
    "by",
    "turnId",
    "callId",
    "toolId",
    "toolVersion",
    "registryVersion",
    "category",
    "duration",
    "ok",
    "errorType",
];

/// The event of a line.
pub(super) fn event(line: &str, value: &Value) -> Value {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let event = text("event").unwrap_or("unknown");
    let (activity, name) = match text("category") {
        Some("retrieval") => READ,
        _ => (OTHER, event),
    };
    let (status_id, status) = match value.get("ok").and_then(Value::as_bool) {
        Some(true) => (1, "Success"),
        Some(false) => (2, "Failure"),
        None => (0, "Unknown"),
    };
    let time =
        text("time").and_then(|time| time.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_millisecond);
    let client = text("clientId").or_else(|| text("by"));
    let severity = if event == "audit_gap" && text("source").is_none() { HIGH } else { INFORMATIONAL };
    let ocsf = json!({
        "category_uid": CATEGORY.0, "category_name": CATEGORY.1,
        "class_uid": CLASS.0, "class_name": CLASS.1,
        "activity_id": activity, "activity_name": name,
        "type_uid": CLASS.0 * 100 + activity,
        "severity_id": severity,
        "time": time,
        "duration": value.get("duration").and_then(Value::as_u64),
        "status_id": status_id, "status": status, "status_code": text("errorType"),
        "actor": {
            "app_name": "quarterdeck",
            "user": client.map(|client| json!({ "uid": client })),
            "session": text("sessionId").map(|session| json!({ "uid": session })),
        },
        "src_endpoint": { "uid": client.unwrap_or("quarterdeck") },
        "api": {
            "operation": text("toolId").unwrap_or(event),
            "version": text("toolVersion"),
            "service": { "name": "quarterdeck", "version": text("registryVersion") },
            "request": text("callId").map(|call| json!({ "uid": call })),
        },
        "metadata": {
            "version": SCHEMA_VERSION,
            "product": { "name": "Quarterdeck", "vendor_name": "Quarterdeck", "version": env!("CARGO_PKG_VERSION") },
            "log_name": "audit", "event_code": event,
            "uid": text("hash"), "sequence": value.get("seq"), "original_time": text("time"),
            "correlation_uid": text("turnId"),
        },
        "unmapped": unmapped(value),
        "raw_data": line,
    });
    without_nulls(ocsf)
}

fn unmapped(value: &Value) -> Map<String, Value> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !MAPPED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// An attribute without a value is left out, but for what is `unmapped`, which stays as it is.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| match name.as_str() {
                "unmapped" => (name, value),
                _ => (name, without_nulls(value)),
            })
            .collect(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_becomes_api_activity_with_everything_the_class_requires() {
        let line = r#"{"seq":7,"prev":"00","event":"tool_execution","time":"2026-01-13T09:00:00.250Z","sessionId":"ses_1","clientId":"c_1","turnId":"t_1","callId":"call_1","toolId":"kb_search","toolVersion":"1.0.0","registryVersion":"r1","category":"retrieval","duration":12,"ok":false,"errorType":"TRANSIENT","args":{"query":null},"hash":"ab"}"#;
        let event = event(line, &serde_json::from_str(line).unwrap());
        assert_eq!(
            event,
            json!({
                "category_uid": 6, "category_name": "Application Activity",
                "class_uid": 6003, "class_name": "API Activity",
                "activity_id": 2, "activity_name": "Read", "type_uid": 600_302,
                "severity_id": 1, "time": 1_768_294_800_250_u64, "duration": 12,
                "status_id": 2, "status": "Failure", "status_code": "TRANSIENT",
                "actor": { "app_name": "quarterdeck", "user": { "uid": "c_1" }, "session": { "uid": "ses_1" } },
                "src_endpoint": { "uid": "c_1" },
                "api": {
                    "operation": "kb_search", "version": "1.0.0",
                    "service": { "name": "quarterdeck", "version": "r1" }, "request": { "uid": "call_1" },
                },
                "metadata": {
                    "version": "1.3.0",
                    "product": { "name": "Quarterdeck", "vendor_name": "Quarterdeck", "version": env!("CARGO_PKG_VERSION") },
                    "log_name": "audit", "event_code": "tool_execution", "uid": "ab", "sequence": 7,
                    "original_time": "2026-01-13T09:00:00.250Z", "correlation_uid": "t_1",
                },
                "unmapped": { "prev": "00", "args": { "query": null } },
                "raw_data": line,
            })
        );
    }

    #[test]
    fn a_gap_is_severe_and_a_handlers_event_of_that_name_is_not() {
        let severity = |line: Value| event("", &line)["severity_id"].clone();
        assert_eq!(severity(json!({ "event": "audit_gap" })), HIGH);
        assert_eq!(severity(json!({ "event": "audit_gap", "source": "handler" })), INFORMATIONAL);
    }
}
