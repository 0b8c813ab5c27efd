//! What a client says about a call in `_meta`.

use quarterdeck_contracts::telemetry::TraceContext;
use rmcp::ErrorData;
use rmcp::model::RequestMetaObject;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// By what a client groups calls into turns.
const TURN_KEY: &str = "quarterdeck/turn";
/// By what a client names a call that it may repeat.
const IDEMPOTENCY_KEY: &str = "quarterdeck/idempotencyKey";
/// Under what a client hands its span on.
const TRACE_PARENT_KEY: &str = "traceparent";
const MAX_KEY_BYTES: usize = 256;

#[derive(Default)]
pub(super) struct CallKeys {
    pub(super) turn: Option<String>,
    /// Names the call in the ledger.
    pub(super) stable_id: Option<String>,
    /// The span that the call is a part of. What is none is ignored, as the standard says.
    pub(super) parent: Option<TraceContext>,
}

impl CallKeys {
    pub(super) fn of(meta: &RequestMetaObject) -> Result<Self, ErrorData> {
        let turn = text(meta, TURN_KEY)?.map(str::to_owned);
        let parent = meta.get(TRACE_PARENT_KEY).and_then(Value::as_str).and_then(TraceContext::parse);
        Ok(Self { turn, stable_id: text(meta, IDEMPOTENCY_KEY)?.map(stable_id), parent })
    }
}

fn text<'a>(meta: &'a RequestMetaObject, key: &str) -> Result<Option<&'a str>, ErrorData> {
    match meta.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if (1..=MAX_KEY_BYTES).contains(&text.len()) => Ok(Some(text)),
        // Ignored, a write that is repeated would be done twice.
        Some(_) => {
            let message = format!("`_meta[\"{key}\"]` must be a text of 1 to {MAX_KEY_BYTES} bytes.");
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// Digits alone: an id that holds the tool's name, or looks like a placeholder, would not count as one.
fn stable_id(key: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let (high, low) = digest.split_at(16);
    let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("{:039}{:039}", number(high), number(low))
}

#[cfg(test)]
mod tests {
    use quarterdeck_runtime::Call;
    use serde_json::json;

    use super::*;

    fn meta(value: Value) -> RequestMetaObject {
        match value {
            Value::Object(fields) => fields.into(),
            _ => RequestMetaObject::default(),
        }
    }

    #[test]
    fn any_key_names_one_call_however_short_it_is() {
        for (tool, key) in [("add", "1"), ("temp", "temp"), ("book", "book"), ("a", "é")] {
            let keys = CallKeys::of(&meta(json!({ IDEMPOTENCY_KEY: key }))).unwrap();
            let id = keys.stable_id.unwrap();
            assert!(Call::new(tool, Value::Null).with_id(id.as_str()).stable_id().is_some(), "{key}");
            assert_ne!(id, stable_id(&format!("{key} ")));
        }
    }

    #[test]
    fn a_key_that_is_no_short_text_is_refused() {
        for value in [json!(1), json!(""), json!("x".repeat(257)), json!(null), json!({})] {
            for key in [IDEMPOTENCY_KEY, TURN_KEY] {
                assert!(CallKeys::of(&meta(json!({ key: value }))).is_err(), "{key} {value}");
            }
        }
        let keys = CallKeys::of(&meta(json!({}))).unwrap();
        assert!(keys.turn.is_none() && keys.stable_id.is_none());
    }
}
