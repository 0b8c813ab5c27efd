//! Follows references and folds `allOf` (rules 1 and 2), within bounds.

use serde_json::Value;

use super::node::{Node, Place};
use super::notes::Notes;
use crate::adapters::{Refusal, place};

/// What one conversion may cost. A definition that refers twice to one that refers twice to … doubles at every
/// level, and no provider takes the result.
const MAX_SCHEMAS: usize = 10_000;
const MAX_DEPTH: usize = 96;

/// The document that is converted, and what has been noted about it.
pub(super) struct Converter<'a> {
    pub(super) document: &'a Value,
    pub(super) notes: Notes,
    /// Problems that do not stop the conversion, such as a name that the provider refuses.
    pub(super) refusals: Vec<Refusal>,
    schemas: usize,
    depth: usize,
}

/// A place, opened.
pub(super) enum OpenedSchema<'a> {
    Flat(Box<Node<'a>>),
    /// The place refers to something that it is itself a part of. Only its own description is kept.
    Recursive {
        description: Option<&'a str>,
    },
}

impl<'a> Converter<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, notes: Notes::default(), refusals: Vec::new(), schemas: 0, depth: 0 }
    }

    /// Makes the schema at `place` flat.
    pub(super) fn open(&mut self, place: &Place<'a>) -> Result<OpenedSchema<'a>, Refusal> {
        let mut node = Node { at: place.at.clone(), ..Node::default() };
        match self.gather(place, &mut node)? {
            GatherResult::All => Ok(OpenedSchema::Flat(Box::new(node))),
            GatherResult::MetAgain => {
                let description = place.schema.get("description").and_then(Value::as_str);
                Ok(OpenedSchema::Recursive { description })
            }
        }
    }

    /// Runs `work` one level deeper, unless that is too deep.
    pub(super) fn deeper<T>(
        &mut self,
        at: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= MAX_DEPTH {
            return Err(refusal(at, format!("schemas are nested more than {MAX_DEPTH} levels deep here")));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn gather(&mut self, place: &Place<'a>, node: &mut Node<'a>) -> Result<GatherResult, Refusal> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            let reason =
                format!("with its references written out, the schema has more than {MAX_SCHEMAS} parts");
            return Err(refusal(&place.at, reason));
        }
        node.fill(place);
        if let Some(reference) = place.schema.get("$ref").and_then(Value::as_str) {
            if place.refs.contains(&reference) {
                self.notes.add("recursive $ref", &place.at);
                return Ok(GatherResult::MetAgain);
            }
            let target = self.target(place, reference)?;
            let gathered = self.deeper(&place.at, |converter| converter.gather(&target, node))?;
            if matches!(gathered, GatherResult::MetAgain) {
                return Ok(gathered);
            }
        }
        self.fold_all_of(place, node)
    }

    fn fold_all_of(&mut self, place: &Place<'a>, node: &mut Node<'a>) -> Result<GatherResult, Refusal> {
        let Some(all_of) = place.schema.get("allOf") else { return Ok(GatherResult::All) };
        let parts = place.child("allOf", all_of);
        self.notes.add("allOf merged", &parts.at);
        let mut met_again = false;
        for part in parts.elements() {
            let gathered = self.deeper(&part.at, |converter| converter.gather(&part, node))?;
            met_again |= matches!(gathered, GatherResult::MetAgain);
        }
        // A part that leads back here adds nothing that is not already being said, unless nothing is said beside it.
        if met_again && node.kinds.is_empty() && node.properties.is_empty() {
            return Ok(GatherResult::MetAgain);
        }
        Ok(GatherResult::All)
    }

    fn target(&self, place: &Place<'a>, reference: &'a str) -> Result<Place<'a>, Refusal> {
        let Some((schema, at)) = place::follow(self.document, reference) else {
            return Err(refusal(&place.at, format!("`{reference}` names nothing inside the parameters")));
        };
        let mut refs = place.refs.clone();
        refs.push(reference);
        Ok(Place { schema, at, refs })
    }
}

enum GatherResult {
    All,
    MetAgain,
}

fn refusal(at: &str, reason: String) -> Refusal {
    Refusal { at: at.to_owned(), reason }
}
