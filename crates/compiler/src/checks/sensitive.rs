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
    leads_to(parameters, pointer, &|_| true)
}

/// Whether a pointer, in which `*` stands for any item of a list, leads to a parameter whose schema is `accepted`.
pub(super) fn leads_to(parameters: &Value, pointer: &str, accepted: &dyn Fn(&Value) -> bool) -> bool {
    let Some(rest) = pointer.strip_prefix('/') else { return false };
    let tokens: Vec<String> =
        rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    Search { root: parameters, accepted }.reaches(parameters, &tokens, 0)
}

struct Search<'a> {
    root: &'a Value,
    accepted: &'a dyn Fn(&Value) -> bool,
}

impl Search<'_> {
    /// Whether some value that `schema` admits has something at `tokens`.
    fn reaches(&self, schema: &Value, tokens: &[String], depth: usize) -> bool {
        /// Far beyond any real schema; ends a chain of references that never arrives.
        const MAX_DEPTH: usize = 64;
        if depth > MAX_DEPTH {
            return false;
        }
        let is_here = match tokens {
            [] => (self.accepted)(schema),
            [token, rest @ ..] => {
                nested(schema, token).into_iter().any(|next| self.reaches(next, rest, depth + 1))
            }
        };
        is_here
            || alternatives(self.root, schema).into_iter().any(|same| self.reaches(same, tokens, depth + 1))
    }
}

/// The schemas of what a value has under a name or index.
fn nested<'a>(schema: &'a Value, token: &str) -> Vec<&'a Value> {
    let is_item = token == "*" || token == "-" || token.chars().all(|c| c.is_ascii_digit());
    let property = schema.get("properties").and_then(|properties| properties.get(token));
    let map = schema.get("additionalProperties").filter(|map| map.is_object());
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let items = is_item.then(|| schema.get("items").into_iter().chain(list(schema, "prefixItems")));
    property
        .into_iter()
        .chain(map)
        .chain(patterns.into_iter().flat_map(|patterns| patterns.values()))
        .chain(items.into_iter().flatten())
        .collect()
}

/// The schemas that describe the same value as this one does.
fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let referred = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let listed = ["allOf", "anyOf", "oneOf"].iter().flat_map(|keyword| list(schema, keyword));
    let conditional = ["then", "else"].iter().filter_map(|keyword| schema.get(*keyword));
    listed.chain(conditional).chain(referred).collect()
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

    #[test]
    fn a_parameter_can_be_found_by_what_its_schema_is() {
        let parameters = json!({
            "properties": {
                "amount": { "type": "number" },
                "note": { "type": "string" },
                "rows": { "items": { "properties": { "price": { "$ref": "#/$defs/money" } } } },
            },
            "$defs": { "money": { "anyOf": [{ "type": "null" }, { "type": "number" }] } },
        });
        let is_number = |schema: &Value| schema.get("type") == Some(&json!("number"));
        for (pointer, is_there) in [
            ("/amount", true),
            ("/note", false),
            ("/rows", false),
            ("/rows/*/price", true),
            ("/rows/*", false),
        ] {
            assert_eq!(leads_to(&parameters, pointer, &is_number), is_there, "{pointer}");
        }
    }
}
