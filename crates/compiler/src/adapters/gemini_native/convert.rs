//! One schema into the dialect (rules 3 to 6 and 13).

use indexmap::IndexMap;
use serde_json::Value;

use super::converter::{Converter, OpenedSchema};
use super::form::{Form, Kind, Single};
use super::limits;
use super::node::{Node, Place};
use crate::adapters::{Refusal, names};

/// Keywords that the dialect lacks and that no description can tell (rule 4).
///
/// `additionalProperties` is one of them only when it is a schema. All others are noted whatever their value, even
/// `uniqueItems: false`: the rule names keywords, not meanings.
const DROPPED: [&str; 17] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "multipleOf",
    "additionalProperties",
];

impl<'a> Converter<'a> {
    pub(super) fn convert(&mut self, place: &Place<'a>) -> Result<Form, Refusal> {
        self.deeper(&place.at, |converter| match converter.open(place)? {
            OpenedSchema::Flat(node) => converter.convert_node(*node),
            OpenedSchema::Recursive { description } => Ok(Form::One(recursive(description))),
        })
    }

    pub(super) fn convert_node(&mut self, node: Node<'a>) -> Result<Form, Refusal> {
        self.note_dropped(&node);
        let union = self.note_unions(&node);
        if let Some(union) = union
            && node.properties.is_empty()
        {
            return self.convert_union(node, union);
        }
        match node.kinds.as_slice() {
            [] if node.is_null() => Ok(Form::One(self.convert_single(Kind::String, node)?)),
            [] => {
                let kind = self.inferred(&node);
                Ok(Form::One(self.convert_single(kind, node)?))
            }
            &[kind] => Ok(Form::One(self.convert_single(kind, node)?)),
            _ => self.convert_type_list(node),
        }
    }

    /// A node that is of one kind, whatever its own `type` says.
    pub(super) fn convert_single(&mut self, kind: Kind, node: Node<'a>) -> Result<Single, Refusal> {
        let mut single = Single::new(kind);
        single.nullable = node.nullable;
        single.description = node.text("description").map(str::to_owned);
        self.tell_values(&node, &mut single);
        self.tell_format(&node, &mut single);
        match kind {
            Kind::Array => single.items = Some(Box::new(self.convert_items(&node)?)),
            Kind::Object => self.convert_fields(&node, &mut single)?,
            _ => {}
        }
        single.limits = limits::kept(&node, kind, &mut self.notes);
        Ok(single)
    }

    /// Notes what rule 4 drops.
    pub(super) fn note_dropped(&mut self, node: &Node<'a>) {
        for keyword in DROPPED {
            if let Some(place) = node.get(keyword)
                && !(keyword == "additionalProperties" && place.schema.is_boolean())
            {
                self.notes.add(keyword, &place.at);
            }
        }
    }

    /// Notes what is lost of a node's unions, and picks the one to convert: `anyOf` when there are both.
    ///
    /// "Exactly one" becomes "any" wherever a `oneOf` stands, so that is noted even where the branches cannot
    /// overlap. Beside properties (and at the root) a union is not converted at all.
    pub(super) fn note_unions(&mut self, node: &Node<'a>) -> Option<&'static str> {
        let mut first = None;
        for (union, beside) in [("anyOf", "anyOf beside properties"), ("oneOf", "oneOf beside properties")] {
            let Some(place) = node.get(union) else { continue };
            if place.schema.as_array().is_none_or(Vec::is_empty) {
                continue;
            }
            if union == "oneOf" {
                self.notes.add("oneOf", &place.at);
            }
            if !node.properties.is_empty() || node.at.is_empty() {
                self.notes.add(beside, &place.at);
            }
            first = first.or(Some(union));
        }
        first
    }

    /// The kind of a node that names no type (rule 6).
    fn inferred(&mut self, node: &Node<'a>) -> Kind {
        let any = |keywords: &[&str]| keywords.iter().any(|keyword| node.has(keyword));
        if let Some(values) = &node.values {
            if let Some(kind) = common_kind(values) {
                return kind;
            }
        } else if any(&["properties", "required"])
            || node.get("additionalProperties").is_some_and(|place| place.schema.is_object())
        {
            return Kind::Object;
        } else if any(&["items", "prefixItems"]) {
            return Kind::Array;
        } else if any(&["minLength", "maxLength", "pattern", "format"]) {
            return Kind::String;
        } else if any(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            return Kind::Number;
        }
        self.notes.add("untyped schema", &node.at);
        Kind::String
    }

    fn convert_fields(&mut self, node: &Node<'a>, single: &mut Single) -> Result<(), Refusal> {
        let mut properties = IndexMap::with_capacity(node.properties.len());
        for (name, schemas) in &node.properties {
            if let Some(place) = schemas.first() {
                self.judge_name(name, place);
            }
            let form = match schemas.as_slice() {
                [only] => self.convert(only)?,
                several => self.convert_any(several)?,
            };
            properties.insert((*name).to_owned(), form);
        }
        let declared = |name: &&&str| properties.contains_key(**name);
        single.required = node.required.iter().filter(declared).map(|name| (*name).to_owned()).collect();
        // An empty schema says nothing about the values, so there is no map to tell of.
        let map = node.get("additionalProperties").and_then(|place| place.schema.as_object());
        if properties.is_empty() && map.is_some_and(|schema| !schema.is_empty()) {
            single.hint("Free-form map of string keys.");
        }
        single.properties = properties;
        Ok(())
    }

    /// A bad name spoils the declaration but not the conversion, so that all of them are found in one go.
    fn judge_name(&mut self, name: &str, place: &Place<'a>) {
        if names::gemini_native(name) || self.refusals.iter().any(|refusal| refusal.at == place.at) {
            return;
        }
        let rule = "letters, digits and underscores, no digit first, at most 64";
        let reason = format!("Gemini takes no property named {name:?}: {rule}");
        self.refusals.push(Refusal { at: place.at.clone(), reason });
    }
}

/// What stands for a schema inside itself.
pub(super) fn recursive(description: Option<&str>) -> Single {
    let mut single = Single::new(Kind::Object);
    single.description = description.map(str::to_owned);
    single
}

/// The kind that all values share, null aside. Whole numbers are numbers among fractions.
fn common_kind(values: &[&Value]) -> Option<Kind> {
    let mut kinds = values.iter().filter_map(|value| Kind::of(value));
    let first = kinds.next()?;
    kinds.try_fold(first, |common, kind| match (common, kind) {
        (common, kind) if common == kind => Some(common),
        (common, kind) if common.is_numeric() && kind.is_numeric() => Some(Kind::Number),
        _ => None,
    })
}
