//! A compiled schema.

use serde_json::Value;

/// A schema that is ready to judge values.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
}

/// Why a schema cannot be compiled at all.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Uncompilable {
    /// Where in the schema, as a JSON pointer.
    pub pointer: String,
    /// One sentence.
    pub reason: String,
}

impl Schema {
    /// Prepares `source` for judging. References never leave the document.
    pub fn compile(source: &Value) -> Result<Self, Uncompilable> {
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(source)
            .map(|validator| Self { validator })
            .map_err(|error| Uncompilable { pointer: error.schema_path().to_string(), reason: error.to_string() })
    }

    /// Whether the value is accepted as it stands.
    pub fn accepts(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }
}
