//! When a look-up came back with nothing.

use serde_json::Value;

/// The names under which tools list what they found.
const RESULT_LISTS: [&str; 12] = [
    "results",
    "items",
    "records",
    "existing_events",
    "available_slots",
    "events",
    "hits",
    "matches",
    "entries",
    "documents",
    "rows",
    "slots",
];

/// Whether an answer's data says that nothing was found: all of its result lists are empty. A calendar without events has
/// free slots, and is not empty. Scalars beside the lists do not count.
pub fn is_empty_result(data: &Value) -> bool {
    match data {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            // Answers have few fields: comparing their names takes less than to look up each of the lists.
            let mut named = fields
                .iter()
                .filter(|(name, _)| RESULT_LISTS.contains(&name.as_str()))
                .filter_map(|(_, list)| list.as_array())
                .peekable();
            if named.peek().is_some() {
                return named.all(Vec::is_empty);
            }
            // A list of another name counts when nothing but scalars stands beside it.
            let mut lists = 0;
            let nothing = fields.values().all(|value| match value {
                Value::Array(items) => {
                    lists += 1;
                    items.is_empty()
                }
                Value::Object(_) => false,
                _ => true,
            });
            fields.is_empty() || (nothing && lists > 0)
        }
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_has_many_forms() {
        for nothing in [
            json!(null),
            json!(""),
            json!([]),
            json!({}),
            json!({ "results": [] }),
            json!({ "results": [], "query_time_ms": 3, "clamped": true }),
            json!({ "existing_events": [], "available_slots": [], "summary": "0 busy periods" }),
            json!({ "results": [], "filters": { "type": "person" } }),
            json!({ "found": [], "took": 3 }),
        ] {
            assert!(is_empty_result(&nothing), "{nothing}");
        }
    }

    #[test]
    fn a_scalar_or_one_result_is_something() {
        for something in [
            json!(0),
            json!(false),
            json!("x"),
            json!([null]),
            json!({ "results": [{}], "empty": "none" }),
            json!({ "existing_events": [], "available_slots": [{}], "summary": "0 busy periods, 1 available slot" }),
            json!({ "existing_events": [{}], "available_slots": [], "summary": "1 busy period" }),
            json!({ "items": [], "records": [1] }),
            json!({ "total": 0 }),
            json!({ "record": {} }),
            json!({ "a": [], "b": [1] }),
        ] {
            assert!(!is_empty_result(&something), "{something}");
        }
    }
}
