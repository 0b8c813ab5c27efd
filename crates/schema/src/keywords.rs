//! Which keywords exist, what they apply to, and where they hold subschemas.
//!
//! The set is that of draft 2020-12 together with `definitions` and `dependencies`, which real tools still use, and
//! OpenAPI's `nullable`.

use serde_json::{Map, Value};

use crate::types::Type;

/// Whether the keyword means anything to us.
pub(crate) fn is_known(keyword: &str) -> bool {
    is_rule(keyword) || ANNOTATIONS.contains(&keyword)
}

/// Whether the keyword can reject a value or leads to one that can.
pub(crate) fn is_rule(keyword: &str) -> bool {
    UNTYPED_RULES.contains(&keyword) || TYPED_RULES.iter().any(|(name, _)| *name == keyword)
}

/// The types of value that the keyword looks at; empty when it looks at all of them.
pub(crate) fn applies_to(keyword: &str) -> &'static [Type] {
    TYPED_RULES.iter().find(|(name, _)| *name == keyword).map_or(&[], |(_, types)| types)
}

/// Every known keyword, for suggestions.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    UNTYPED_RULES.iter().chain(ANNOTATIONS).copied().chain(TYPED_RULES.iter().map(|(name, _)| *name))
}

/// Whether the schema object has a keyword that can reject anything.
pub(crate) fn has_rules(schema: &Map<String, Value>) -> bool {
    schema.keys().any(|keyword| is_rule(keyword))
}

/// Whether there is such a keyword besides `$ref`.
pub(crate) fn has_rules_beside_ref(schema: &Map<String, Value>) -> bool {
    schema.keys().any(|keyword| keyword != "$ref" && is_rule(keyword))
}

/// How a keyword holds its subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value is a schema.
    One,
    /// The value is an array of schemas.
    List,
    /// The value is an object whose members are schemas.
    Map,
}

/// Whose value a subschema judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The value that the surrounding schema judges.
    Same,
    /// A member, an item or a property name of it.
    Part,
    /// Nothing by itself: a definition waiting to be referred to.
    Nothing,
}

/// How and for whom the keyword holds subschemas, if it does.
pub(crate) fn applicator(keyword: &str) -> Option<(Shape, Subject)> {
    Some(match keyword {
        "not" | "if" | "then" | "else" => (Shape::One, Subject::Same),
        "allOf" | "anyOf" | "oneOf" => (Shape::List, Subject::Same),
        "dependentSchemas" | "dependencies" => (Shape::Map, Subject::Same),
        "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => (Shape::One, Subject::Part),
        "prefixItems" => (Shape::List, Subject::Part),
        "properties" | "patternProperties" => (Shape::Map, Subject::Part),
        "contentSchema" => (Shape::One, Subject::Nothing),
        "$defs" | "definitions" => (Shape::Map, Subject::Nothing),
        _ => return None,
    })
}

/// The subschemas that a keyword's value holds, each with the pointer segment that leads to it (none for
/// [`Shape::One`]).
pub(crate) fn subschemas(shape: Shape, value: &Value) -> Vec<(Option<String>, &Value)> {
    match (shape, value) {
        (Shape::One, schema) => vec![(None, schema)],
        (Shape::List, Value::Array(items)) => {
            items.iter().enumerate().map(|(index, schema)| (Some(index.to_string()), schema)).collect()
        }
        (Shape::Map, Value::Object(members)) => {
            members.iter().map(|(name, schema)| (Some(name.clone()), schema)).collect()
        }
        _ => Vec::new(),
    }
}

const ANNOTATIONS: &[&str] = &[
    "$async",
    "$defs",
    "$id",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

// `$comment` counts as a rule because the reference implementation counts it: a schema with nothing else is then
// looked at, and a `default` beside it matters.
const UNTYPED_RULES: &[&str] = &[
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "else",
    "enum",
    "if",
    "not",
    "nullable",
    "oneOf",
    "then",
    "type",
];

const TYPED_RULES: &[(&str, &[Type])] = &[
    ("maximum", &[Type::Number]),
    ("minimum", &[Type::Number]),
    ("exclusiveMaximum", &[Type::Number]),
    ("exclusiveMinimum", &[Type::Number]),
    ("multipleOf", &[Type::Number]),
    ("format", &[Type::Number, Type::String]),
    ("maxLength", &[Type::String]),
    ("minLength", &[Type::String]),
    ("pattern", &[Type::String]),
    ("contains", &[Type::Array]),
    ("items", &[Type::Array]),
    ("maxContains", &[Type::Array]),
    ("maxItems", &[Type::Array]),
    ("minContains", &[Type::Array]),
    ("minItems", &[Type::Array]),
    ("prefixItems", &[Type::Array]),
    ("unevaluatedItems", &[Type::Array]),
    ("uniqueItems", &[Type::Array]),
    ("additionalProperties", &[Type::Object]),
    ("dependencies", &[Type::Object]),
    ("dependentRequired", &[Type::Object]),
    ("dependentSchemas", &[Type::Object]),
    ("maxProperties", &[Type::Object]),
    ("minProperties", &[Type::Object]),
    ("patternProperties", &[Type::Object]),
    ("properties", &[Type::Object]),
    ("propertyNames", &[Type::Object]),
    ("required", &[Type::Object]),
    ("unevaluatedProperties", &[Type::Object]),
];
