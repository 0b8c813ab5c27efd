//! What of a tool's stored values may be shown. They have no schema, so the names of parameters are looked for.

use std::collections::BTreeSet;

use quarterdeck_contracts::Metadata;
use serde_json::Value;

use super::HIDDEN;
use super::declared::names_in;

/// How deep values are followed. What lies deeper is hidden.
const MAX_DEPTH: usize = 32;

/// The value of a key with everything hidden that may be a sensitive argument.
pub(crate) fn hide_in_stored(definition: Option<(&Metadata, &Value)>, key: &str, value: &Value) -> Value {
    let Some((metadata, parameters)) = definition else { return HIDDEN.into() };
    if metadata.sensitive.is_empty() {
        return value.clone();
    }
    let mut declared = BTreeSet::new();
    names_in(parameters, &mut declared, 0);
    let names =
        Names { declared, sensitive: metadata.sensitive.iter().filter_map(|at| last_name(at)).collect() };
    names.shown(value, names.is_shown(key), 0)
}

/// The name of the field that a pointer leads to; `/cards/*/number` leads to `number`.
fn last_name(pointer: &str) -> Option<String> {
    let is_name = |part: &&str| !part.is_empty() && *part != "*" && part.parse::<usize>().is_err();
    let part = pointer.split('/').rfind(is_name)?;
    Some(part.replace("~1", "/").replace("~0", "~"))
}

struct Names<'a> {
    declared: BTreeSet<&'a str>,
    sensitive: BTreeSet<String>,
}

impl Names<'_> {
    fn is_shown(&self, name: &str) -> bool {
        self.declared.contains(name) && !self.sensitive.contains(name)
    }

    /// A value that stands under a name that is shown, or is not.
    fn shown(&self, value: &Value, is_shown: bool, depth: usize) -> Value {
        match value {
            _ if depth >= MAX_DEPTH => HIDDEN.into(),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let is_shown = self.is_shown(name);
                    let value = match self.sensitive.contains(name) {
                        true => HIDDEN.into(),
                        false => self.shown(value, is_shown, depth + 1),
                    };
                    (name.clone(), value)
                };
                Value::Object(fields.iter().map(field).collect())
            }
            Value::Array(items) => items.iter().map(|item| self.shown(item, is_shown, depth + 1)).collect(),
            scalar if is_shown => scalar.clone(),
            _ => HIDDEN.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(sensitive: &[&str]) -> Metadata {
        serde_json::from_value(json!({
            "toolId": "pay", "version": "1.0.0", "description": "Pays.", "category": "action", "sideEffects": "writes",
            "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text"], "latencyBudgetMs": 100,
            "timeoutMs": 1000, "sensitive": sensitive,
        }))
        .unwrap()
    }

    #[test]
    fn sensitive_values_are_hidden_under_their_name_and_wherever_no_parameter_stands() {
        let parameters = json!({ "type": "object", "properties": {
            "card": { "type": "object", "properties": { "number": { "type": "string" }, "owner": { "type": "string" } } },
            "amount": { "type": "number" },
        } });
        let stored = json!({
            "amount": 12, "card": { "number": "4111", "owner": "Ann" }, "copies": ["4111"], "number": 4111,
            "last": { "amount": 3, "pin": 99 },
        });
        let of_pay = metadata(&["/card/number"]);
        let shown = hide_in_stored(Some((&of_pay, &parameters)), "last", &stored);
        assert_eq!(
            shown,
            json!({
                "amount": 12, "card": { "number": HIDDEN, "owner": "Ann" }, "copies": [HIDDEN], "number": HIDDEN,
                "last": { "amount": 3, "pin": HIDDEN },
            })
        );
        let scalar = |key| hide_in_stored(Some((&of_pay, &parameters)), key, &json!("4111"));
        assert_eq!(
            [scalar("number"), scalar("note"), scalar("owner")],
            [json!(HIDDEN), json!(HIDDEN), json!("4111")]
        );
        assert_eq!(hide_in_stored(None, "amount", &stored), HIDDEN, "a tool that is not known");
        let open = metadata(&[]);
        assert_eq!(
            hide_in_stored(Some((&open, &parameters)), "last", &stored),
            stored,
            "nothing is sensitive"
        );
    }
}
