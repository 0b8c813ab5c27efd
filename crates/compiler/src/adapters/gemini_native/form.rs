//! The dialect itself: what a converted schema can say, and nothing else.
//!
//! The types carry the dialect's rules. A union has no siblings because it has no room for them, its branches are
//! never unions, and only text can be listed as values.

use std::hash::{Hash, Hasher};

use indexmap::IndexMap;
use serde_json::{Map, Number, Value};

/// A converted schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// A schema of one type.
    One(Single),
    /// `anyOf`, at least two branches.
    Any(Vec<Single>),
}

/// A converted schema of one type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Single {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) description: Option<String>,
    /// `enum`; only text has one, and no value is empty.
    pub(super) values: Vec<String>,
    pub(super) format: Option<String>,
    /// Present on every array.
    pub(super) items: Option<Box<Form>>,
    pub(super) properties: IndexMap<String, Form>,
    pub(super) required: Vec<String>,
    /// Bounds and the pattern, in the order they are written.
    pub(super) limits: Vec<(&'static str, Value)>,
}

impl Eq for Single {}

impl Hash for Single {
    /// Covers what tells the branches of a union apart. Two that differ only further down are compared.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.nullable, &self.description, &self.values, &self.format).hash(state);
        (&self.required, &self.limits).hash(state);
        self.properties.keys().for_each(|name| name.hash(state));
    }
}

/// A type of the dialect. `null` is not one of them: it is `nullable` on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

impl Single {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            nullable: false,
            description: None,
            values: Vec::new(),
            format: None,
            items: None,
            properties: IndexMap::new(),
            required: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Appends a hint to the description, after one space.
    pub(super) fn hint(&mut self, hint: &str) {
        self.description = Some(joined(self.description.as_deref(), Some(hint)));
    }

    /// Puts the words of a surrounding schema before this one's own.
    pub(super) fn introduce(&mut self, words: &str) {
        self.description = Some(joined(Some(words), self.description.as_deref()));
    }

    pub(super) fn into_json(self) -> Value {
        let mut json = Map::new();
        json.insert("type".into(), self.kind.name().into());
        if self.nullable {
            json.insert("nullable".into(), true.into());
        }
        if let Some(description) = self.description {
            json.insert("description".into(), description.into());
        }
        if !self.values.is_empty() {
            json.insert("enum".into(), self.values.into());
        }
        if let Some(format) = self.format {
            json.insert("format".into(), format.into());
        }
        if let Some(items) = self.items {
            json.insert("items".into(), items.into_json());
        }
        if !self.properties.is_empty() {
            let properties = self.properties.into_iter().map(|(name, form)| (name, form.into_json()));
            json.insert("properties".into(), Value::Object(properties.collect()));
        }
        if !self.required.is_empty() {
            json.insert("required".into(), self.required.into());
        }
        for (keyword, limit) in self.limits {
            json.insert(keyword.into(), limit);
        }
        Value::Object(json)
    }
}

impl Form {
    pub(super) fn into_json(self) -> Value {
        match self {
            Self::One(single) => single.into_json(),
            Self::Any(branches) => {
                let branches = branches.into_iter().map(Single::into_json).collect();
                Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(branches))]))
            }
        }
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Number => "NUMBER",
            Self::Integer => "INTEGER",
            Self::Boolean => "BOOLEAN",
            Self::Array => "ARRAY",
            Self::Object => "OBJECT",
        }
    }

    /// The kind that JSON Schema calls `name`.
    pub(super) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// The kind of a value; `None` for null.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if is_whole(number) => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        })
    }

    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Self::Number | Self::Integer)
    }
}

/// `1.0` counts as a number, as its author wrote it.
fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}

fn joined(first: Option<&str>, second: Option<&str>) -> String {
    [first, second].into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
