//! Hides what a tool's definition calls sensitive.

use quarterdeck_contracts::Metadata;
use serde_json::Value;

/// What stands in the place of a hidden value.
pub(crate) const HIDDEN: &str = "[hidden]";

/// The arguments as audit and logs may show them.
pub(crate) fn redacted(metadata: Option<&Metadata>, args: &Value) -> Value {
    let mut shown = args.clone();
    match metadata {
        // Of a tool that does not exist nobody has said what is sensitive.
        None => hide(&mut shown),
        Some(metadata) => {
            for pointer in &metadata.sensitive {
                let parts: Vec<_> = pointer
                    .split('/')
                    .skip(1)
                    .map(|part| part.replace("~1", "/").replace("~0", "~"))
                    .collect();
                hide_at(&mut shown, &parts);
            }
        }
    }
    shown
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| *field = HIDDEN.into()),
        other => *other = HIDDEN.into(),
    }
}

fn hide_at(value: &mut Value, parts: &[String]) {
    let Some((first, rest)) = parts.split_first() else {
        *value = HIDDEN.into();
        return;
    };
    match value {
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(first) {
                hide_at(field, rest);
            }
        }
        // A pointer into a list means each of its items, unless it names one.
        Value::Array(items) => match first.parse::<usize>() {
            Ok(index) => {
                if let Some(item) = items.get_mut(index) {
                    hide_at(item, rest);
                }
            }
            Err(_) => {
                let rest = if first == "*" { rest } else { parts };
                items.iter_mut().for_each(|item| hide_at(item, rest));
            }
        },
        // What should have been a container may hold the secret itself.
        other => *other = HIDDEN.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(sensitive: &[&str], args: Value) -> Value {
        let metadata: Metadata = serde_json::from_value(json!({
            "toolId": "t", "version": "1.0.0", "description": "d", "category": "action", "sideEffects": "writes",
            "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 1,
            "sensitive": sensitive,
        }))
        .unwrap();
        redacted(Some(&metadata), &args)
    }

    #[test]
    fn what_a_pointer_names_is_hidden_whole() {
        assert_eq!(
            shown(
                &["/attendees", "/card/number"],
                json!({ "attendees": ["a@b.c"], "card": { "number": 1, "kind": "x" } })
            ),
            json!({ "attendees": HIDDEN, "card": { "number": HIDDEN, "kind": "x" } })
        );
    }

    #[test]
    fn a_pointer_through_a_list_hides_it_in_every_item() {
        assert_eq!(
            shown(&["/people/phone"], json!({ "people": [{ "phone": 1 }, { "phone": 2 }] })),
            json!({ "people": [{ "phone": HIDDEN }, { "phone": HIDDEN }] })
        );
    }

    #[test]
    fn arguments_of_the_wrong_shape_do_not_let_a_secret_through() {
        assert_eq!(shown(&["/card/number"], json!({ "card": "4111" })), json!({ "card": HIDDEN }));
        assert_eq!(shown(&["/card"], json!("4111")), json!(HIDDEN));
    }

    #[test]
    fn of_an_unknown_tool_everything_is_hidden() {
        assert_eq!(redacted(None, &json!({ "password": "x" })), json!({ "password": HIDDEN }));
    }
}
