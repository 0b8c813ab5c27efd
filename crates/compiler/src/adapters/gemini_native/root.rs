//! The parameters as a whole: always an object (rules 8 and 13).

use indexmap::{IndexMap, IndexSet};

use super::converter::{Converter, OpenedSchema};
use super::form::{Kind, Single};
use super::node::{Node, Place};
use crate::adapters::Refusal;

impl<'a> Converter<'a> {
    /// The converted parameters; `None` when there are no properties, and the declaration then has no parameters.
    pub(super) fn convert_root(&mut self) -> Result<Option<Single>, Refusal> {
        let root = Place { schema: self.document, at: String::new(), refs: Vec::new() };
        let mut node = match self.open(&root)? {
            OpenedSchema::Flat(node) if node.kinds.is_empty() || node.kinds.contains(&Kind::Object) => *node,
            _ => {
                return Err(Refusal {
                    at: String::new(),
                    reason: "the parameters are not an object".to_owned(),
                });
            }
        };
        self.note_dropped(&node);
        if let Some(union) = self.note_unions(&node)
            && node.properties.is_empty()
        {
            self.unite_branches(&mut node, union)?;
        }
        let single = self.convert_single(Kind::Object, node)?;
        Ok((!single.properties.is_empty()).then_some(single))
    }

    /// Gives a root without properties those of its branches. What every branch requires stays required.
    fn unite_branches(&mut self, node: &mut Node<'a>, union: &str) -> Result<(), Refusal> {
        let mut properties: IndexMap<&str, Vec<Place<'_>>> = IndexMap::new();
        let mut required: Option<IndexSet<&str>> = None;
        for branch in self.objects_of(node, union)? {
            self.note_dropped(&branch);
            for (name, schemas) in branch.properties {
                let known = properties.entry(name).or_default();
                for schema in schemas {
                    if !known.iter().any(|other| other.schema == schema.schema) {
                        known.push(schema);
                    }
                }
            }
            required = Some(match required {
                None => branch.required,
                Some(common) => common.into_iter().filter(|name| branch.required.contains(*name)).collect(),
            });
        }
        node.properties = properties;
        node.required.extend(required.unwrap_or_default());
        Ok(())
    }

    /// The branches of a union, with unions among them replaced by their own branches.
    fn objects_of(&mut self, node: &Node<'a>, union: &str) -> Result<Vec<Node<'a>>, Refusal> {
        let mut objects = Vec::new();
        for place in node.get(union).map(Place::elements).unwrap_or_default() {
            let OpenedSchema::Flat(branch) = self.open(&place)? else { continue };
            if branch.is_null() {
                continue;
            }
            let nested = ["anyOf", "oneOf"].into_iter().find(|union| branch.has(union));
            match nested {
                Some(nested) if branch.properties.is_empty() => {
                    let inner = self.deeper(&place.at, |converter| converter.objects_of(&branch, nested))?;
                    objects.extend(inner);
                }
                _ => objects.push(*branch),
            }
        }
        Ok(objects)
    }
}
