//! Reads JSON files that are written by hand: scripts and scenarios. Every field knows its path, and the first mistake is
//! reported with its line.

mod path;

use std::time::Duration;

use quarterdeck_contracts::parse_json;
use serde_json::{Map, Value};

pub use self::path::Path;

const MAX_PAUSE_MILLIS: u64 = 3_600_000;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {field}: {problem}")]
pub struct FieldError {
    /// Counted from 1.
    pub line: usize,
    /// The path of the field, such as `replies[2].calls[0].name`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// A mistake whose line is not known yet.
pub type Fault = (Path, String);

/// Parses a file and hands its root to `read`. `name` is what errors call the file.
///
/// # Errors
///
/// The first mistake.
pub fn read<T>(
    text: &str,
    name: &'static str,
    read: impl FnOnce(&Field<'_>) -> Result<T, Fault>,
) -> Result<T, FieldError> {
    let value = parse_json(text).map_err(|error| FieldError {
        line: error.line(),
        field: name.into(),
        problem: format!("no JSON: {error}"),
    })?;
    read(&Field { value: &value, path: Path::root(name) }).map_err(|(path, problem)| FieldError {
        line: path.line(text),
        field: path.to_string(),
        problem,
    })
}

/// A value and its path.
#[derive(Clone)]
pub struct Field<'a> {
    pub value: &'a Value,
    pub path: Path,
}

/// An object without unknown fields.
pub struct Fields<'a> {
    fields: &'a Map<String, Value>,
    pub path: Path,
}

impl<'a> Field<'a> {
    pub fn fault<T>(&self, wanted: &str) -> Result<T, Fault> {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Err((self.path.clone(), format!("must be {wanted}, is {found}")))
    }

    pub fn string(&self) -> Result<&'a str, Fault> {
        self.value.as_str().map_or_else(|| self.fault("a text"), Ok)
    }

    pub fn number(&self) -> Result<u64, Fault> {
        self.value.as_u64().map_or_else(|| self.fault("a whole number from 0 on"), Ok)
    }

    pub fn items(&self) -> Result<Vec<Field<'a>>, Fault> {
        let Some(items) = self.value.as_array() else { return self.fault("a list") };
        Ok(items.iter().enumerate().map(|(nth, value)| Field { value, path: self.path.item(nth) }).collect())
    }

    pub fn one_or_many(&self) -> Vec<Field<'a>> {
        self.items().unwrap_or_else(|_| vec![self.clone()])
    }

    /// A field whose only value is `true`.
    pub fn must_be_true(&self) -> Result<(), Fault> {
        if self.value == &Value::Bool(true) { Ok(()) } else { self.fault("true") }
    }

    pub fn object(&self, known: &[&str]) -> Result<Fields<'a>, Fault> {
        let Some(fields) = self.value.as_object() else { return self.fault("an object") };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => {
                Err((self.path.field(unknown), format!("is not known; known are {}", known.join(", "))))
            }
            None => Ok(Fields { fields, path: self.path.clone() }),
        }
    }
}

impl<'a> Fields<'a> {
    pub fn find(&self, name: &str) -> Option<Field<'a>> {
        self.fields.get(name).map(|value| Field { value, path: self.path.field(name) })
    }

    pub fn needed(&self, name: &str) -> Result<Field<'a>, Fault> {
        self.find(name).ok_or_else(|| (self.path.field(name), "is missing".into()))
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.find(name).map(|field| field.string()).transpose()
    }

    pub fn pause(&self, name: &str) -> Result<Option<Duration>, Fault> {
        let Some(field) = self.find(name) else { return Ok(None) };
        match field.number()? {
            millis if millis <= MAX_PAUSE_MILLIS => Ok(Some(Duration::from_millis(millis))),
            _ => Err((field.path, "is over an hour".into())),
        }
    }

    /// One of several words; the first if the field is missing.
    pub fn choice<T: Clone>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Fault> {
        let given = self.text(name)?;
        let found = words.iter().find(|(word, _)| given.is_none_or(|given| given == *word));
        found.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("“{word}”")).collect();
            self.wrong(name, &format!("must be one of {}", known.join(", ")))
        })
    }

    /// True unless it is set to false.
    pub fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.find(name) {
            None => Ok(true),
            Some(Field { value: Value::Bool(flag), .. }) => Ok(*flag),
            Some(other) => other.fault("true or false"),
        }
    }

    pub fn wrong(&self, name: &str, problem: &str) -> Fault {
        (self.path.field(name), problem.to_owned())
    }
}
