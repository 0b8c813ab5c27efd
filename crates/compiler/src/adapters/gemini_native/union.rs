//! Unions: `anyOf`, `oneOf`, lists of types, tuples (rules 5, 7 and 12).

use super::convert::recursive;
use super::converter::{Converter, OpenedSchema};
use super::form::{Form, Kind, Single};
use super::node::{Node, Place};
use crate::adapters::Refusal;
use crate::distinct::distinct;

/// Keywords that mean something for one type only, as far as they differ between the types of a list.
const OF_STRINGS: [&str; 3] = ["minLength", "maxLength", "pattern"];
const OF_ARRAYS: [&str; 4] = ["items", "prefixItems", "minItems", "maxItems"];
const OF_OBJECTS: [&str; 3] = ["additionalProperties", "minProperties", "maxProperties"];
const OF_NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// A branch, opened but not converted.
enum Branch<'a> {
    Flat(Node<'a>),
    Made(Single),
}

impl<'a> Converter<'a> {
    /// A node whose `union` (`anyOf` or `oneOf`) has branches, and that has no properties of its own.
    pub(super) fn convert_union(&mut self, node: Node<'a>, union: &str) -> Result<Form, Refusal> {
        let places = node.get(union).map(Place::elements).unwrap_or_default();
        self.convert_branches(node, &places, union)
    }

    /// Any of several schemas that share nothing.
    pub(super) fn convert_any(&mut self, places: &[Place<'a>]) -> Result<Form, Refusal> {
        let at = places.first().map(|place| place.at.clone()).unwrap_or_default();
        self.convert_branches(Node { at, ..Node::default() }, places, "")
    }

    /// The items of an array (rule 12). What follows a tuple's places is one more thing an item may be.
    pub(super) fn convert_items(&mut self, node: &Node<'a>) -> Result<Form, Refusal> {
        let items = node.get("items");
        // Before 2020-12 a list under `items` was the tuple.
        let tuple = node.get("prefixItems").or(items).filter(|place| place.schema.is_array());
        if let Some(tuple) = tuple {
            let mut elements = tuple.elements();
            elements.extend(items.filter(|place| place.schema.is_object()).cloned());
            if !elements.is_empty() {
                self.notes.add("prefixItems", &tuple.at);
                return self.convert_any(&elements);
            }
        }
        match items {
            Some(place) if place.schema.is_object() => self.convert(place),
            _ => {
                self.notes.add("array without items", &node.at);
                Ok(Form::One(Single::new(Kind::String)))
            }
        }
    }

    /// A node of several types: a branch for each, with only its own keywords (rule 5).
    pub(super) fn convert_type_list(&mut self, node: Node<'a>) -> Result<Form, Refusal> {
        let mut branches = Vec::new();
        for kind in &node.kinds {
            let branch = only_of(*kind, &node);
            // No listed value is of this type, so no argument can be.
            if branch.values.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            branches.push(self.convert_single(*kind, branch)?);
        }
        let nullable = node.nullable || node.values.iter().flatten().any(|value| value.is_null());
        Ok(finished(branches, node.text("description"), nullable))
    }

    fn convert_branches(
        &mut self,
        mut node: Node<'a>,
        places: &[Place<'a>],
        union: &str,
    ) -> Result<Form, Refusal> {
        let mut branches = self.open_branches(&mut node, places)?;
        if let [Branch::Flat(_)] = branches.as_slice()
            && let Some(Branch::Flat(only)) = branches.pop()
        {
            return self.convert_only(&node, only, union);
        }
        if let Some(texts) = literals(&branches) {
            node.values = Some(texts);
            node.kinds = vec![Kind::String];
            return Ok(Form::One(self.convert_single(Kind::String, node)?));
        }
        let mut converted = Vec::new();
        for branch in branches {
            match branch {
                Branch::Made(single) => converted.push(single),
                Branch::Flat(mut branch) => {
                    let described = branch.get("description").cloned();
                    branch.fill_from(&node, union);
                    match described {
                        Some(place) => branch.keywords.insert("description", place),
                        None => branch.keywords.shift_remove("description"),
                    };
                    match self.deeper(&node.at, |converter| converter.convert_node(branch))? {
                        Form::One(single) => converted.push(single),
                        Form::Any(nested) => converted.extend(nested),
                    }
                }
            }
        }
        Ok(finished(converted, node.text("description"), node.nullable))
    }

    /// Opens every branch; those that only null satisfies make the node nullable instead.
    fn open_branches(
        &mut self,
        node: &mut Node<'a>,
        places: &[Place<'a>],
    ) -> Result<Vec<Branch<'a>>, Refusal> {
        let mut branches = Vec::new();
        for place in places {
            match self.open(place)? {
                OpenedSchema::Flat(branch) if branch.is_null() => node.nullable = true,
                OpenedSchema::Flat(branch) => branches.push(Branch::Flat(*branch)),
                OpenedSchema::Recursive { description } => {
                    branches.push(Branch::Made(recursive(description)))
                }
            }
        }
        Ok(branches)
    }

    /// The one branch that is left, merged into its node. The branch's keywords win, but the node's description
    /// does: it was written for the place where the union stands.
    fn convert_only(&mut self, node: &Node<'a>, mut only: Node<'a>, union: &str) -> Result<Form, Refusal> {
        only.fill_from(node, union);
        only.nullable |= node.nullable;
        if let Some(place) = node.get("description") {
            only.keywords.insert("description", place.clone());
        }
        self.deeper(&node.at, |converter| converter.convert_node(only))
    }
}

/// `branches` as one form: no duplicates, the node's words on the first, null allowed by all or none.
fn finished(branches: Vec<Single>, description: Option<&str>, nullable: bool) -> Form {
    let mut distinct = distinct(branches);
    for branch in &mut distinct {
        branch.nullable |= nullable;
    }
    if distinct.len() > 1 {
        if let (Some(words), Some(first)) = (description, distinct.first_mut()) {
            first.introduce(words);
        }
        return Form::Any(distinct);
    }
    // Nothing but null was left.
    let mut single = distinct.pop().unwrap_or_else(|| Single { nullable: true, ..Single::new(Kind::String) });
    if let Some(words) = description {
        single.description = Some(words.to_owned());
    }
    Form::One(single)
}

/// The texts of all branches when every one of them is a literal. Their own descriptions have no place in the
/// dialect, which lists values without words.
fn literals<'a>(branches: &[Branch<'a>]) -> Option<Vec<&'a serde_json::Value>> {
    let mut texts = Vec::new();
    for branch in branches {
        let Branch::Flat(node) = branch else { return None };
        node.literals()?;
        texts.extend(node.values.iter().flatten().copied());
    }
    (!texts.is_empty()).then_some(texts)
}

/// `node` without the keywords and values of other types than `kind`.
fn only_of<'a>(kind: Kind, node: &Node<'a>) -> Node<'a> {
    let mut branch = node.clone();
    branch.nullable = false;
    branch.keywords.shift_remove("description");
    let mut others: Vec<&str> = Vec::new();
    if kind != Kind::String {
        others.extend(OF_STRINGS);
    }
    if kind != Kind::Array {
        others.extend(OF_ARRAYS);
    }
    if kind != Kind::Object {
        others.extend(OF_OBJECTS);
        branch.properties.clear();
        branch.required.clear();
    }
    if !kind.is_numeric() {
        others.extend(OF_NUMBERS);
    }
    if node.text("format").is_some_and(|format| !is_format_of(kind, format)) {
        others.push("format");
    }
    for keyword in others {
        branch.keywords.shift_remove(keyword);
    }
    if let Some(values) = &mut branch.values {
        values.retain(|value| {
            Kind::of(value).is_some_and(|of| of == kind || of == Kind::Integer && kind == Kind::Number)
        });
    }
    branch
}

fn is_format_of(kind: Kind, format: &str) -> bool {
    match format {
        "int32" | "int64" | "float" | "double" => kind.is_numeric(),
        _ => kind == Kind::String,
    }
}
