//! Strict types: every keyword stands beside the `type` that it is for, and no schema contradicts the one around it.

use serde_json::{Map, Value};

use super::issue::Rule;
use super::walk::{Walk, WalkScope};
use crate::keywords;
use crate::types::{self, Type};

impl<'d> Walk<'_, 'd> {
    /// The types that the schema declares, after a word about `nullable`.
    pub(super) fn declared_types(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) -> Vec<Type> {
        let types = types::declared(schema);
        if let Some(nullable) = schema.get("nullable") {
            let place = here.keyword("nullable");
            if !nullable.is_boolean() {
                let message = "`nullable` is true or false".to_owned();
                self.report(place, Rule::Nullable, message, "write true or false");
            } else if types.is_empty() {
                let message = "`nullable` has no meaning without `type`".to_owned();
                self.report(place, Rule::Nullable, message, "add a `type`, or remove `nullable`");
            } else if nullable == &Value::Bool(false) && types.contains(&Type::Null) {
                let message = "`type` admits null and `nullable` forbids it".to_owned();
                self.report(place, Rule::Nullable, message, "remove one of the two");
            }
        }
        types
    }

    pub(super) fn strict_types(
        &mut self,
        schema: &Map<String, Value>,
        declared: Vec<Type>,
        here: &mut WalkScope<'d>,
    ) {
        if declared.len() > 1 && !(declared.len() == 2 && declared.contains(&Type::Null)) {
            let names: Vec<_> = declared.iter().map(|kind| kind.name()).collect();
            self.report(
                here.keyword("type"),
                Rule::UnionTypes,
                format!("one value cannot be of several types ({})", names.join(", ")),
                "use `anyOf` with one schema per type; only a pair with \"null\" may stand in a list",
            );
        }
        if self.fits_context(&declared, here) {
            self.typed_keywords(schema, here);
        }
    }

    /// Narrows what is known about the value's type; false when the schema contradicts it.
    fn fits_context(&mut self, declared: &[Type], here: &mut WalkScope<'d>) -> bool {
        if declared.is_empty() {
            return true;
        }
        if here.types.is_empty() {
            here.types = declared.to_vec();
            return true;
        }
        let outside: Vec<_> = declared.iter().filter(|kind| !includes(&here.types, **kind)).collect();
        for kind in &outside {
            let around: Vec<_> = here.types.iter().map(|kind| kind.name()).collect();
            self.report(
                here.keyword("type"),
                Rule::TypeOutsideContext,
                format!(
                    "a value cannot be of type {} here: the schema around it says {}",
                    kind.name(),
                    around.join(", ")
                ),
                "make the two types agree",
            );
        }
        let narrowed = here.types.iter().filter_map(|kind| match kind {
            kind if includes(declared, *kind) => Some(*kind),
            Type::Number if declared.contains(&Type::Integer) => Some(Type::Integer),
            _ => None,
        });
        here.types = narrowed.collect();
        outside.is_empty()
    }

    fn typed_keywords(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) {
        for keyword in schema.keys() {
            let wanted = keywords::applies_to(keyword);
            if wanted.is_empty() || wanted.iter().any(|kind| applicable(&here.types, *kind)) {
                continue;
            }
            let names: Vec<_> = wanted.iter().map(|kind| format!("\"{}\"", kind.name())).collect();
            let names = names.join(" or ");
            let message = match here.types.is_empty() {
                true => format!("`{keyword}` needs `type` {names} beside it"),
                false => {
                    format!("`{keyword}` is for values of type {names}, which this schema does not admit")
                }
            };
            let help = match here.types.is_empty() {
                true => format!("add \"type\": {names}"),
                false => format!("remove `{keyword}`, or change `type`"),
            };
            self.report(here.keyword(keyword), Rule::MissingType, message, help);
        }
    }
}

/// Whether a schema for `types` may be narrowed to `kind`.
fn includes(types: &[Type], kind: Type) -> bool {
    types.contains(&kind) || (kind == Type::Integer && types.contains(&Type::Number))
}

/// Whether a keyword for `kind` has something to do among `types`.
fn applicable(types: &[Type], kind: Type) -> bool {
    types.contains(&kind) || (kind == Type::Number && types.contains(&Type::Integer))
}
