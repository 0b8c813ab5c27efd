//! Sensitive pointers lead to parameters; one that leads nowhere would hide nothing.

use serde_json::Value;

use super::Subject;
use crate::{Diagnostic, nearest, rules};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(parameters) = subject.field("parameters") else { return };
    for (index, pointer) in subject.strings("sensitive") {
        if leads_somewhere(parameters, pointer) {
            continue;
        }
        let first = pointer.trim_start_matches('/').split('/').next().unwrap_or("");
        let names = parameters["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
        let help = match nearest(first, names.map(String::as_str)) {
            Some(meant) => format!("did you mean \"/{meant}\"?"),
            None => "write `/` and the parameter's name, such as \"/attendees\"".into(),
        };
        problems.push(
            Diagnostic::new(&rules::SENSITIVE_NOWHERE, format!("\"{pointer}\" leads to no parameter"), help)
                .at(subject.json.place(&format!("/sensitive/{index}"))),
        );
    }
}

fn leads_somewhere(parameters: &Value, pointer: &str) -> bool {
    let Some(rest) = pointer.strip_prefix('/') else { return false };
    let tokens: Vec<String> =
        rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    reaches(parameters, parameters, &tokens, 0)
}

/// Whether some value that `schema` admits has something at `tokens`.
fn reaches(root: &Value, schema: &Value, tokens: &[String], depth: usize) -> bool {
    /// Far beyond any real schema; ends a chain of references that never arrives.
    const MAX_DEPTH: usize = 64;
    let Some(token) = tokens.first() else { return true };
    if depth > MAX_DEPTH {
        return false;
    }
    let further = |next: &Value| reaches(root, next, &tokens[1..], depth + 1);
    let here = |same: &Value| reaches(root, same, tokens, depth + 1);
    let is_item = token == "*" || token == "-" || token.chars().all(|c| c.is_ascii_digit());
    schema.get("properties").and_then(|properties| properties.get(token)).is_some_and(further)
        || schema.get("additionalProperties").filter(|map| map.is_object()).is_some_and(further)
        || schema
            .get("patternProperties")
            .and_then(Value::as_object)
            .is_some_and(|patterns| patterns.values().any(further))
        || (is_item && schema.get("items").is_some_and(further))
        || (is_item && list(schema, "prefixItems").any(further))
        || ["allOf", "anyOf", "oneOf"].iter().any(|keyword| list(schema, keyword).any(here))
        || ["then", "else"].iter().any(|keyword| schema.get(*keyword).is_some_and(here))
        || schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
            .is_some_and(here)
}

fn list<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_are_followed_through_everything_that_can_hold_a_value() {
        let parameters = json!({
            "properties": {
                "attendees": { "type": "array", "items": { "properties": { "email": {} } } },
                "who": { "anyOf": [{ "$ref": "#/$defs/person" }, { "type": "null" }] },
                "labels": { "additionalProperties": { "type": "string" } },
                "a/b": {},
            },
            "$defs": { "person": { "properties": { "phone": {} } }, "loop": { "$ref": "#/$defs/loop" } },
        });
        for good in ["/attendees", "/attendees/*/email", "/attendees/0", "/who/phone", "/labels/any", "/a~1b"]
        {
            assert!(leads_somewhere(&parameters, good), "{good}");
        }
        for bad in ["attendees", "/attendee", "/attendees/email", "/who/email", "/labels/any/deeper", ""] {
            assert!(!leads_somewhere(&parameters, bad), "{bad}");
        }
        assert!(!leads_somewhere(&json!({ "$ref": "#" }), "/x"));
    }
}
