//! A schema document and the names inside it: `$id`, anchors, and what a `$ref` leads to.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{keywords, pointer, uri};

/// Schemas nested more deeply than this are refused before anything walks them, so every walk may recurse. JSON text
/// that deep does not parse either.
const MAX_SCHEMA_DEPTH: usize = 128;

/// Whether walking the value is safe for the stack.
pub(crate) fn is_shallow(value: &Value) -> bool {
    let mut level = vec![value];
    for _ in 0..MAX_SCHEMA_DEPTH {
        level = level
            .into_iter()
            .flat_map(|value| -> Box<dyn Iterator<Item = &Value>> {
                match value {
                    Value::Array(items) => Box::new(items.iter()),
                    Value::Object(members) => Box::new(members.values()),
                    _ => Box::new(std::iter::empty()),
                }
            })
            .collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

/// A place in a document.
#[derive(Debug, Clone)]
pub(crate) struct Place<'d> {
    pub(crate) pointer: String,
    pub(crate) schema: &'d Value,
    /// The base URI that holds around it: an `$id` of its own is resolved against it.
    pub(crate) base: String,
}

impl Place<'_> {
    /// The base URI that references inside it start from.
    pub(crate) fn inner_base(&self) -> Cow<'_, str> {
        // The document's own base has its `$id` in it already.
        let own = self.schema.as_object().filter(|_| !self.pointer.is_empty());
        match own.and_then(|schema| inner_base(schema, &self.base)) {
            Some(base) => Cow::Owned(base),
            None => Cow::Borrowed(&self.base),
        }
    }
}

/// Why a reference leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceError {
    Nothing,
    Foreign,
    Endless,
}

/// A document with its names indexed. It must be shallow.
#[derive(Debug)]
pub(crate) struct Document<'d> {
    root: &'d Value,
    root_base: String,
    /// Pointers of embedded resources and of anchors, by full URI.
    names: HashMap<String, String>,
    ambiguous: Vec<(String, String)>,
    /// The base URIs of the resources that have a dynamic anchor of that name.
    dynamic: HashMap<String, Vec<String>>,
}

impl<'d> Document<'d> {
    pub(crate) fn new(root: &'d Value) -> Self {
        let root_base = id(root).map(|id| uri::without_fragment(id).to_owned()).unwrap_or_default();
        let mut document =
            Self { root, root_base, names: HashMap::new(), ambiguous: Vec::new(), dynamic: HashMap::new() };
        let base = document.root_base.clone();
        document.index(root, String::new(), &base, true);
        document
    }

    pub(crate) fn root(&self) -> Place<'d> {
        Place { pointer: String::new(), schema: self.root, base: self.root_base.clone() }
    }

    /// Names that more than one schema claims, with the pointer of the later one.
    pub(crate) fn ambiguous(&self) -> &[(String, String)] {
        &self.ambiguous
    }

    /// The schema at `pointer`, in which `base` is known to hold.
    pub(crate) fn at(&self, pointer: &str, base: &str) -> Result<Place<'d>, ReferenceError> {
        let place = self.walk(pointer)?;
        Ok(Place { base: base.to_owned(), ..place })
    }

    /// What `reference` means in a schema whose base is `base`. A schema that only refers on is followed.
    pub(crate) fn resolve(&self, base: &str, reference: &str) -> Result<Place<'d>, ReferenceError> {
        let mut place = self.step(base, reference)?;
        // No author forwards a reference this often: it is going in circles.
        for _ in 0..256 {
            let Some(next) = forwarding(place.schema) else { return Ok(place) };
            let next = self.step(&place.inner_base(), next)?;
            // The root is where judging starts, so it is referred to and never stood in for.
            if next.pointer.is_empty() {
                return Ok(place);
            }
            place = next;
        }
        Err(ReferenceError::Endless)
    }

    /// The schema that `reference` names, which may only refer on.
    pub(crate) fn place(&self, base: &str, reference: &str) -> Result<Place<'d>, ReferenceError> {
        self.step(base, reference)
    }

    /// The dynamic anchors that more than one resource has: only for those it matters which way led to a reference.
    pub(crate) fn contested_anchors(&self) -> impl Iterator<Item = (&str, &[String])> {
        let contested = self.dynamic.iter().filter(|(_, bases)| bases.iter().any(|base| *base != bases[0]));
        contested.map(|(anchor, bases)| (anchor.as_str(), bases.as_slice()))
    }

    fn step(&self, base: &str, reference: &str) -> Result<Place<'d>, ReferenceError> {
        let target = uri::resolve(base, reference);
        let (resource, fragment) = target.split_once('#').unwrap_or((&target, ""));
        let start = if resource == self.root_base {
            ""
        } else {
            self.names.get(resource).ok_or(ReferenceError::Foreign)?
        };
        let fragment = uri::percent_decode(fragment);
        if fragment.is_empty() || fragment == "/" {
            return self.walk(start);
        }
        if fragment.starts_with('/') {
            return self.walk(&format!("{start}{fragment}"));
        }
        match self.names.get(&format!("{resource}#{fragment}")) {
            Some(pointer) => self.walk(pointer),
            None => Err(ReferenceError::Nothing),
        }
    }

    /// The place at a pointer from the document's root, with the base that holds around it.
    fn walk(&self, path: &str) -> Result<Place<'d>, ReferenceError> {
        let mut base = self.root_base.clone();
        let mut schema = self.root;
        let mut pointer = String::new();
        for segment in pointer::segments(path) {
            if let (false, Some(id)) = (pointer.is_empty(), id(schema)) {
                base = uri::without_fragment(&uri::resolve(&base, id)).to_owned();
            }
            schema = pointer::child(schema, &segment).ok_or(ReferenceError::Nothing)?;
            pointer::push(&mut pointer, &segment);
        }
        Ok(Place { pointer, schema, base })
    }

    fn index(&mut self, schema: &'d Value, pointer: String, base: &str, is_root: bool) {
        let Value::Object(keywords) = schema else { return };
        let mut base = base.to_owned();
        if let (false, Some(id)) = (is_root, id(schema)) {
            base = uri::without_fragment(&uri::resolve(&base, id)).to_owned();
            self.name(base.clone(), &pointer);
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(anchor)) = keywords.get(keyword) {
                self.name(format!("{base}#{anchor}"), &pointer);
                if keyword == "$dynamicAnchor" {
                    self.dynamic.entry(anchor.clone()).or_default().push(base.clone());
                }
            }
        }
        for (keyword, value) in keywords {
            let Some((shape, _)) = keywords::applicator(keyword) else { continue };
            let place = pointer::join(&pointer, keyword);
            for (segment, subschema) in keywords::subschemas(shape, value) {
                let place = segment.map_or_else(|| place.clone(), |segment| pointer::join(&place, &segment));
                self.index(subschema, place, &base, false);
            }
        }
    }

    fn name(&mut self, name: String, pointer: &str) {
        match self.names.get(&name) {
            // The root needs no name, so sharing its anchor is not held against anyone.
            Some(holder) if !holder.is_empty() => self.ambiguous.push((name, pointer.to_owned())),
            _ => {
                self.names.insert(name, pointer.to_owned());
            }
        }
    }
}

/// Whether anything inside looks like a reference, a property of that name included, as Ajv asks.
pub(crate) fn mentions_reference(value: &Value) -> bool {
    const NAMES: [&str; 5] = ["$ref", "$recursiveRef", "$recursiveAnchor", "$dynamicRef", "$dynamicAnchor"];
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, member)| NAMES.contains(&name.as_str()) || mentions_reference(member))
        }
        Value::Array(items) => items.iter().any(mentions_reference),
        _ => false,
    }
}

/// The base that holds inside `schema`, which stands where `base` holds.
pub(crate) fn inner_base(schema: &Map<String, Value>, base: &str) -> Option<String> {
    let id = schema.get("$id")?.as_str()?;
    Some(uri::without_fragment(&uri::resolve(base, id)).to_owned())
}

fn id(schema: &Value) -> Option<&str> {
    schema.get("$id")?.as_str()
}

/// Where a schema refers to when it does nothing else.
fn forwarding(schema: &Value) -> Option<&str> {
    let schema = schema.as_object()?;
    let reference = schema.get("$ref")?.as_str()?;
    (!keywords::has_rules_beside_ref(schema)).then_some(reference)
}
