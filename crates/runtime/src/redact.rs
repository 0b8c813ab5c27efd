//! Hides what a tool's definition calls sensitive.

use std::sync::Arc;

use quarterdeck_contracts::{Metadata, ToolError};
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

/// The sensitive values of one call, to be kept out of every text that is made of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Arc<[String]>);

/// Shorter values are not looked for: they would be found in every other word.
const SHORTEST: usize = 4;

impl Secrets {
    /// What a definition calls sensitive, as it stands in these arguments.
    pub(crate) fn of(metadata: &Metadata, args: &Value) -> Self {
        if metadata.sensitive.is_empty() {
            return Self::default();
        }
        let mut found = Vec::new();
        collect(args, &redacted(Some(metadata), args), &mut found);
        // A value that holds another is hidden first, so that no part of it is left.
        found.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(found.into())
    }

    /// A text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// A value without them, at any depth.
    pub(crate) fn hide_in(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.hide(text),
            Value::Number(number) if self.0.contains(&number.to_string()) => *value = HIDDEN.into(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_in(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An error without them.
    pub(crate) fn hide_in_error(&self, error: &mut ToolError) {
        if self.0.is_empty() {
            return;
        }
        error.message = self.hide(&error.message);
        error.suggestion = error.suggestion.as_deref().map(|suggestion| self.hide(suggestion));
        if let Some(details) = &mut error.details {
            self.hide_in(details);
        }
    }
}

/// Every scalar that was hidden, as text.
fn collect(value: &Value, shown: &Value, found: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(fields), Value::Object(shown)) => {
            fields.iter().for_each(|(name, field)| collect(field, &shown[name], found));
        }
        (Value::Array(items), Value::Array(shown)) => {
            items.iter().zip(shown).for_each(|(item, shown)| collect(item, shown, found));
        }
        (value, shown) if value != shown => collect_all(value, found),
        _ => {}
    }
}

fn collect_all(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST => found.push(text.clone()),
        Value::Number(number) if number.to_string().len() >= SHORTEST => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_all(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_all(field, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(sensitive: &[&str], args: Value) -> Value {
        redacted(Some(&metadata(sensitive)), &args)
    }

    fn metadata(sensitive: &[&str]) -> Metadata {
        serde_json::from_value(json!({
            "toolId": "t", "version": "1.0.0", "description": "d", "category": "action", "sideEffects": "writes",
            "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 1,
            "sensitive": sensitive,
        }))
        .unwrap()
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
    fn texts_that_were_made_of_a_call_hide_its_secrets() {
        let metadata = metadata(&["/card", "/people/name"]);
        let args = json!({ "card": { "number": 41_112_222, "cvc": "12" }, "people": [{ "name": "Nansen" }], "city": "Oslo" });
        let secrets = Secrets::of(&metadata, &args);
        assert_eq!(secrets.hide("41112222 of Nansen in Oslo, 12"), "[hidden] of [hidden] in Oslo, 12");
        let mut details = json!([{ "got": 41_112_222, "why": "no Nansen" }]);
        secrets.hide_in(&mut details);
        assert_eq!(details, json!([{ "got": HIDDEN, "why": "no [hidden]" }]));
    }

    #[test]
    fn of_an_unknown_tool_everything_is_hidden() {
        assert_eq!(redacted(None, &json!({ "password": "x" })), json!({ "password": HIDDEN }));
    }
}
