//! A compiled schema.

use serde_json::Value;

use crate::defaults::Defaults;
use crate::document::{self, Document};
use crate::explain::{self, Violation};
use crate::plan::Plan;
use crate::{cycles, engine, pattern, prepare};

/// A schema that is ready to judge values.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    plan: Plan,
    defaults: Defaults,
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
    ///
    /// What cannot be judged is refused; that a schema compiles does not mean that [`lint`](crate::lint()) approves.
    pub fn compile(source: &Value) -> Result<Self, Uncompilable> {
        if !document::is_shallow(source) {
            return Err(Uncompilable::at("", "the schema is nested too deeply"));
        }
        if let Some(pointer) = pattern::first_too_nested(source, "") {
            return Err(Uncompilable::at(&pointer, "the pattern is nested too deeply"));
        }
        let source = prepare::prepared(source);
        let document = Document::new(&source);
        if let Some(pointer) = cycles::endless(&document).first() {
            return Err(Uncompilable::at(pointer, "the reference leads back to itself for the same value"));
        }
        let validator = engine::options()
            .build(&source)
            .map_err(|error| Uncompilable { pointer: place(&error), reason: error.to_string() })?;
        let plan = Plan::new(&document);
        let defaults = Defaults::new(&plan);
        Ok(Self { validator, plan, defaults })
    }

    /// Whether the value is accepted as it stands.
    pub fn accepts(&self, value: &Value) -> bool {
        self.is_walkable(value) && self.validator.is_valid(value)
    }

    /// Inserts the defaults of absent properties and returns the JSON pointers of what was inserted. Nothing is
    /// coerced and nothing removed.
    pub fn fill_defaults(&self, value: &mut Value) -> Vec<String> {
        if self.defaults.is_empty() || !self.is_walkable(value) {
            return Vec::new();
        }
        self.defaults.fill(&self.plan, value)
    }

    /// Everything that is wrong with the value as it stands, up to a thousand entries.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if !self.is_walkable(value) {
            return vec![too_deep()];
        }
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let found = explain::violations(&self.plan, value);
        if found.is_empty() { self.plain_violations(value) } else { found }
    }

    /// Fills defaults into a call's arguments and judges the result: the pointers that were filled, or everything that
    /// is wrong. What was filled stays in either case.
    pub fn admit(&self, arguments: &mut Value) -> Result<Vec<String>, Vec<Violation>> {
        let filled = self.fill_defaults(arguments);
        if self.accepts(arguments) { Ok(filled) } else { Err(self.violations(arguments)) }
    }

    /// A recursive schema follows the value as deep as it goes, so the value must have a bottom within reach.
    fn is_walkable(&self, value: &Value) -> bool {
        !self.plan.is_recursive || document::is_shallow(value)
    }

    /// The validator crate's own list, for the rare schema that the plan reads more leniently (a `$dynamicRef` across
    /// embedded resources).
    fn plain_violations(&self, value: &Value) -> Vec<Violation> {
        let errors = self.validator.iter_errors(value);
        errors
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                keyword: error.kind().keyword().to_owned(),
                message: error.masked().to_string(),
            })
            .collect()
    }
}

impl Uncompilable {
    fn at(pointer: &str, reason: &str) -> Self {
        Self { pointer: pointer.to_owned(), reason: reason.to_owned() }
    }
}

/// An error of the meta-schema tells the place in the schema as that of the value it judged.
fn place(error: &jsonschema::ValidationError<'_>) -> String {
    error.instance_path().to_string()
}

fn too_deep() -> Violation {
    Violation {
        path: String::new(),
        keyword: "$ref".to_owned(),
        message: "the arguments are nested too deeply".to_owned(),
    }
}
