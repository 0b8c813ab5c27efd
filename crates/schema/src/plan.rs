//! A schema taken apart once, so that filling defaults and listing errors need not read JSON again.
//!
//! The verdict itself is the validator crate's; nothing here decides it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::document::{self, Document, Place};
use crate::types::{self, Type};
use crate::{engine, pointer};

/// A node's number. The root is 0.
pub(crate) type NodeId = usize;

/// All schemas that judging a value can reach.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    /// Whether some schema leads back to itself, through parts of the value.
    pub(crate) is_recursive: bool,
    /// Whether the error list must know which members and items were judged.
    pub(crate) tracks_evaluated: bool,
}

/// One schema.
#[derive(Debug)]
pub(crate) enum Node {
    Accept,
    Refuse,
    Rules(Box<Rules>),
}

/// A schema's keywords, in groups that are judged one after the other.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) types: Vec<Type>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) reference: Option<Reference>,
    pub(crate) not: Option<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) condition: Option<Condition>,
    pub(crate) prefix_items: Vec<NodeId>,
    pub(crate) items: Option<NodeId>,
    pub(crate) contains: Option<Contains>,
    pub(crate) unevaluated_items: Option<NodeId>,
    pub(crate) required: Vec<String>,
    pub(crate) property_names: Option<NodeId>,
    pub(crate) additional_properties: Option<NodeId>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) defaults: Vec<(String, Value)>,
    pub(crate) properties: Vec<(String, NodeId)>,
    pub(crate) declared: HashSet<String>,
    pub(crate) pattern_properties: Vec<(Leaf, NodeId)>,
    pub(crate) unevaluated_properties: Option<NodeId>,
}

/// A keyword that looks at the value and at no other schema. The validator crate judges it, so that the error list
/// cannot disagree with the verdict.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) keyword: String,
    pub(crate) limit: Value,
    judge: OnceLock<Option<Validator>>,
}

impl Leaf {
    fn new(keyword: &str, limit: &Value) -> Self {
        Self { keyword: keyword.to_owned(), limit: limit.clone(), judge: OnceLock::new() }
    }

    pub(crate) fn admits(&self, value: &Value) -> bool {
        let judge = self.judge.get_or_init(|| {
            let keyword = &self.keyword;
            engine::options().build(&json!({ keyword: self.limit })).ok()
        });
        judge.as_ref().is_none_or(|judge| judge.is_valid(value))
    }
}

/// `$ref` or `$dynamicRef`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    pub(crate) target: NodeId,
    /// Whether Ajv compiles the target by itself instead of inlining it. Defaults inside are then filled even below
    /// `anyOf`.
    pub(crate) is_standalone: bool,
}

/// `if` with its branches.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) test: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// `contains` with its limits.
#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) item: NodeId,
    pub(crate) least: u64,
    pub(crate) most: Option<u64>,
}

/// What the presence of a member brings.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) keyword: &'static str,
    pub(crate) member: String,
    pub(crate) demand: Demand,
}

/// What is then demanded.
#[derive(Debug)]
pub(crate) enum Demand {
    Members(Vec<String>),
    Schema(NodeId),
}

impl Plan {
    /// Reads a document whose references are known not to be endless.
    pub(crate) fn new(document: &Document<'_>) -> Self {
        let mut builder =
            Builder { document, ids: HashMap::new(), waiting: VecDeque::new(), is_recursive: false };
        builder.id(document.root());
        let mut nodes = Vec::new();
        while let Some(place) = builder.waiting.pop_front() {
            let node = builder.node(&place);
            nodes.push(node);
        }
        let tracks_evaluated = nodes.iter().any(|node| match node {
            Node::Rules(rules) => rules.unevaluated_items.is_some() || rules.unevaluated_properties.is_some(),
            _ => false,
        });
        Self { nodes, is_recursive: builder.is_recursive, tracks_evaluated }
    }
}

/// The keywords that become leaves.
const LEAVES: [&str; 16] = [
    "enum",
    "const",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "multipleOf",
    "format",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
];

struct Builder<'b, 'd> {
    document: &'b Document<'d>,
    ids: HashMap<String, NodeId>,
    waiting: VecDeque<Place<'d>>,
    is_recursive: bool,
}

impl<'d> Builder<'_, 'd> {
    /// Numbers are given in the order in which nodes are built.
    fn id(&mut self, place: Place<'d>) -> NodeId {
        if let Some(id) = self.ids.get(&place.pointer) {
            return *id;
        }
        let id = self.ids.len();
        self.ids.insert(place.pointer.clone(), id);
        self.waiting.push_back(place);
        id
    }

    fn node(&mut self, place: &Place<'d>) -> Node {
        match place.schema {
            Value::Bool(false) => Node::Refuse,
            Value::Object(schema) if !schema.is_empty() => Node::Rules(Box::new(self.rules(schema, place))),
            _ => Node::Accept,
        }
    }

    fn rules(&mut self, schema: &'d Map<String, Value>, place: &Place<'d>) -> Rules {
        let inner_base =
            if place.pointer.is_empty() { None } else { document::inner_base(schema, &place.base) };
        let here =
            Inside { schema, pointer: &place.pointer, base: inner_base.as_deref().unwrap_or(&place.base) };
        Rules {
            types: types::declared(schema),
            leaves: LEAVES.iter().filter_map(|name| Some(Leaf::new(name, schema.get(*name)?))).collect(),
            reference: self.reference(&here),
            not: self.one(&here, "not"),
            any_of: self.list(&here, "anyOf"),
            one_of: self.list(&here, "oneOf"),
            all_of: self.list(&here, "allOf"),
            condition: self.condition(&here),
            prefix_items: self.list(&here, "prefixItems"),
            items: self.one(&here, "items"),
            contains: self.contains(&here),
            unevaluated_items: self.one(&here, "unevaluatedItems"),
            required: strings(schema.get("required")),
            property_names: self.one(&here, "propertyNames"),
            additional_properties: self.one(&here, "additionalProperties"),
            dependencies: self.dependencies(&here),
            defaults: defaults(schema),
            properties: self.map(&here, "properties"),
            declared: schema
                .get("properties")
                .and_then(Value::as_object)
                .map(|properties| properties.keys().cloned().collect())
                .unwrap_or_default(),
            pattern_properties: self
                .map(&here, "patternProperties")
                .into_iter()
                .map(|(pattern, node)| (Leaf::new("pattern", &Value::String(pattern)), node))
                .collect(),
            unevaluated_properties: self.one(&here, "unevaluatedProperties"),
        }
    }

    fn one(&mut self, here: &Inside<'_, 'd>, keyword: &str) -> Option<NodeId> {
        let schema = here.schema.get(keyword)?;
        Some(self.id(here.place(pointer::join(here.pointer, keyword), schema)))
    }

    fn list(&mut self, here: &Inside<'_, 'd>, keyword: &str) -> Vec<NodeId> {
        let Some(Value::Array(schemas)) = here.schema.get(keyword) else { return Vec::new() };
        let start = pointer::join(here.pointer, keyword);
        let places = schemas.iter().enumerate();
        places
            .map(|(index, schema)| self.id(here.place(pointer::join(&start, &index.to_string()), schema)))
            .collect()
    }

    fn map(&mut self, here: &Inside<'_, 'd>, keyword: &str) -> Vec<(String, NodeId)> {
        let Some(Value::Object(schemas)) = here.schema.get(keyword) else { return Vec::new() };
        let start = pointer::join(here.pointer, keyword);
        schemas
            .iter()
            .map(|(name, schema)| (name.clone(), self.id(here.place(pointer::join(&start, name), schema))))
            .collect()
    }

    fn reference(&mut self, here: &Inside<'_, 'd>) -> Option<Reference> {
        let keyword =
            ["$ref", "$dynamicRef"].into_iter().find(|keyword| here.schema.contains_key(*keyword))?;
        let target = self.document.resolve(here.base, here.schema.get(keyword)?.as_str()?).ok()?;
        let is_standalone = target.pointer.is_empty() || document::mentions_reference(target.schema);
        self.is_recursive |= is_standalone;
        Some(Reference { target: self.id(target), is_standalone })
    }

    fn condition(&mut self, here: &Inside<'_, 'd>) -> Option<Condition> {
        let test = self.one(here, "if")?;
        Some(Condition { test, then: self.one(here, "then"), otherwise: self.one(here, "else") })
    }

    fn contains(&mut self, here: &Inside<'_, 'd>) -> Option<Contains> {
        let bound = |keyword| here.schema.get(keyword).and_then(Value::as_f64).map(|bound| bound as u64);
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        Some(Contains { item: self.one(here, "contains")?, least, most })
    }

    fn dependencies(&mut self, here: &Inside<'_, 'd>) -> Vec<Dependency> {
        let mut dependencies = Vec::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(Value::Object(members)) = here.schema.get(keyword) else { continue };
            let start = pointer::join(here.pointer, keyword);
            for (member, demand) in members {
                let demand = match demand {
                    Value::Array(_) => Demand::Members(strings(Some(demand))),
                    schema => Demand::Schema(self.id(here.place(pointer::join(&start, member), schema))),
                };
                dependencies.push(Dependency { keyword, member: member.clone(), demand });
            }
        }
        dependencies
    }
}

/// A schema object with what its subschemas inherit.
struct Inside<'h, 'd> {
    schema: &'d Map<String, Value>,
    pointer: &'h str,
    base: &'h str,
}

impl<'d> Inside<'_, 'd> {
    fn place(&self, pointer: String, schema: &'d Value) -> Place<'d> {
        Place { pointer, schema, base: self.base.to_owned() }
    }
}

fn defaults(schema: &Map<String, Value>) -> Vec<(String, Value)> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let defaults = properties.iter();
    defaults.filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone()))).collect()
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let Some(Value::Array(items)) = list else { return Vec::new() };
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
