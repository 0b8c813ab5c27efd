//! The seven type names of JSON Schema.

use serde_json::{Map, Value};

/// A type name as `type` spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether `value` is of this type; `1.0` is an integer.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// The types that a schema object declares, `nullable` included. Names that do not exist are left out: the
/// meta-schema check reports them.
pub(crate) fn declared(schema: &Map<String, Value>) -> Vec<Type> {
    let mut types: Vec<Type> = match schema.get("type") {
        Some(Value::String(name)) => Type::parse(name).into_iter().collect(),
        Some(Value::Array(names)) => names.iter().filter_map(|name| Type::parse(name.as_str()?)).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.contains(&Type::Null) && schema.get("nullable") == Some(&Value::Bool(true))
    {
        types.push(Type::Null);
    }
    types
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}
