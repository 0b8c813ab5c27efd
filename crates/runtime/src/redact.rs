//! Hides what a tool's definition declares as sensitive, wherever it appears.
//!
//! A model that misspells a name, or puts a value where it does not belong, must not bring a secret into a record by it. So
//! of a tool with sensitive arguments only that is shown which the definition declares, as it declares it: `declared` says
//! what that is.

mod declared;
mod stored;

use std::sync::Arc;

use quarterdeck_contracts::{Metadata, ToolError};
use serde_json::Value;

pub(crate) use stored::hide_in_stored;

/// Replaces a hidden value.
pub(crate) const HIDDEN: &str = "[hidden]";

/// Which arguments of a tool are sensitive, and the schema that declares them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SensitiveArguments<'a> {
    pointers: &'a [String],
    parameters: &'a Value,
}

impl<'a> SensitiveArguments<'a> {
    /// From a definition and the schema of its parameters.
    pub(crate) fn of(metadata: &'a Metadata, parameters: &'a Value) -> Self {
        Self { pointers: &metadata.sensitive, parameters }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.pointers.is_empty()
    }
}

/// The arguments as audit and logs may show them.
pub(crate) fn redacted(sensitive: Option<SensitiveArguments<'_>>, args: &Value) -> Value {
    // Of a tool that does not exist it is not known what is sensitive, and a name may be a secret too.
    let Some(sensitive) = sensitive else { return HIDDEN.into() };
    let mut shown = hidden_in_place(sensitive, args);
    // A value that is hidden in one place may appear in another as well.
    Secrets::difference(args, &shown).hide_in(&mut shown);
    shown
}

fn hidden_in_place(sensitive: SensitiveArguments<'_>, args: &Value) -> Value {
    if sensitive.pointers.is_empty() {
        return args.clone();
    }
    let mut shown = declared::only_declared(sensitive.parameters, args);
    for pointer in sensitive.pointers {
        let parts: Vec<_> =
            pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        hide_at(&mut shown, &parts);
    }
    shown
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

/// Shorter values are not looked for: they would match everywhere.
const MIN_SECRET_BYTES: usize = 4;

impl Secrets {
    /// The sensitive values in these arguments.
    pub(crate) fn of(sensitive: SensitiveArguments<'_>, args: &Value) -> Self {
        if sensitive.pointers.is_empty() {
            return Self::default();
        }
        Self::difference(args, &hidden_in_place(sensitive, args))
    }

    /// What arguments hold and their shown form does not.
    fn difference(args: &Value, shown: &Value) -> Self {
        let mut found = Vec::new();
        collect(args, shown, &mut found);
        // A value that holds another is hidden first, so that no part of it is left.
        found.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(found.into())
    }

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
            for (name, field) in fields {
                match shown.get(name) {
                    Some(shown) => collect(field, shown, found),
                    None => {
                        collect_text(name, found);
                        collect_all(field, found);
                    }
                }
            }
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
        Value::String(text) => {
            collect_text(text, found);
            // Texts that are made of it may have taken it apart.
            if let Some(inside) = declared::json_in(text) {
                collect_all(&inside, found);
            }
        }
        Value::Number(number) => collect_text(&number.to_string(), found),
        Value::Array(items) => items.iter().for_each(|item| collect_all(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_all(field, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn collect_text(text: &str, found: &mut Vec<String>) {
    if text.len() >= MIN_SECRET_BYTES && text != HIDDEN {
        found.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests;
