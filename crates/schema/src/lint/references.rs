//! References: what they lead to is looked at as if it stood in their place, or by itself.

use std::rc::Rc;

use super::issue::Rule;
use super::walk::{Coverage, Evaluated, Walk, WalkScope};
use crate::document::{ReferenceError, mentions_reference};
use crate::excerpt;

impl<'d> Walk<'_, 'd> {
    pub(super) fn reference(&mut self, reference: &str, here: &WalkScope<'d>, evaluated: &mut Evaluated) {
        let target = match self.document.resolve(&here.base, reference) {
            Ok(target) => target,
            Err(reason) => return self.unresolved("$ref", reference, reason, here),
        };
        if !target.schema.is_object() && !target.schema.is_boolean() {
            return self.unresolved("$ref", reference, ReferenceError::Nothing, here);
        }
        if target.pointer.is_empty() || mentions_reference(target.schema) {
            // It is compiled by itself, so it does not know the types or the composition around the reference.
            self.enqueue(target);
            let later = Evaluated { properties: Coverage::OnlyKnownLater, items: Coverage::OnlyKnownLater };
            return evaluated.merge(later);
        }
        let mut inside = here.same(target.pointer).of_types(&[]);
        inside.base = Rc::from(target.base.as_str());
        let inner = self.subschema(target.schema, inside);
        evaluated.merge(inner);
    }

    pub(super) fn dynamic_reference(&mut self, reference: &str, here: &WalkScope<'d>) {
        match self.document.resolve(&here.base, reference) {
            _ if !reference.starts_with('#') => {
                self.unresolved("$dynamicRef", reference, ReferenceError::Foreign, here);
            }
            Ok(target) => self.enqueue(target),
            Err(reason) => self.unresolved("$dynamicRef", reference, reason, here),
        }
    }

    fn unresolved(&mut self, keyword: &str, reference: &str, reason: ReferenceError, here: &WalkScope<'d>) {
        let shown = excerpt::cut(reference);
        let (rule, message, help) = match reason {
            ReferenceError::Nothing => (
                Rule::UnresolvedReference,
                format!("\"{shown}\" leads to no schema"),
                "refer to a schema of this document, as in \"#/$defs/name\"",
            ),
            ReferenceError::Foreign => (
                Rule::ForeignReference,
                format!("\"{shown}\" leaves the document"),
                "copy the schema into `$defs` and refer to it there",
            ),
            // The search for endless references reports the same place with the same words.
            ReferenceError::Endless => return,
        };
        self.report(here.keyword(keyword), rule, message, help);
    }
}
