//! A schema taken apart once, so that judging a value, filling defaults and listing errors need not read JSON again.

mod cost;
mod leaf;
mod scope;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::document::{self, Document, Place, ReferenceError};
use crate::pattern::{Pattern, PatternSet};
use crate::pointer;
use crate::schema::SchemaError;
use crate::types::{self, Type};
pub(crate) use cost::{Cost, cost_with_memo, cost_without_memo};
pub(crate) use leaf::{BYTES_PER_UNIT, Leaf, size};
use scope::{ScopeId, Scopes};

/// Schemas that a plan may have. Dynamic references can lead to one schema in many ways, each of which counts.
const MAX_NODES: usize = 200_000;

/// Schemas that may lead from one to the next for the same value: judging it recurses once for each.
const MAX_REFERENCE_CHAIN: usize = 200;

/// A node's number. The root is 0.
pub(crate) type NodeId = usize;

/// All schemas that judging a value can reach.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    /// Whether some schema leads back to itself, through parts of the value.
    pub(crate) is_recursive: bool,
    /// Whether some schema asks which members and items others have judged.
    pub(crate) tracks_evaluated: bool,
    pub(crate) patterns: PatternSet,
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
    pub(crate) references: Vec<Reference>,
    pub(crate) not: Option<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) condition: Option<Condition>,
    pub(crate) array: ArrayRules,
    pub(crate) object: ObjectRules,
}

/// Keywords for arrays.
#[derive(Debug, Default)]
pub(crate) struct ArrayRules {
    pub(crate) prefix_items: Vec<NodeId>,
    pub(crate) items: Option<NodeId>,
    pub(crate) contains: Option<Contains>,
    pub(crate) unevaluated_items: Option<NodeId>,
}

/// Keywords for objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    pub(crate) required: Vec<String>,
    pub(crate) property_names: Option<NodeId>,
    pub(crate) additional_properties: Option<NodeId>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) defaults: Vec<(String, Value)>,
    pub(crate) properties: Vec<(String, NodeId)>,
    pub(crate) declared: HashSet<String>,
    pub(crate) pattern_properties: Vec<(Arc<Pattern>, NodeId)>,
    pub(crate) unevaluated_properties: Option<NodeId>,
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
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
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
    pub(crate) fn new(document: &Document<'_>) -> Result<Self, SchemaError> {
        let mut builder = Builder {
            document,
            scopes: Scopes::new(document),
            ids: HashMap::new(),
            waiting: VecDeque::new(),
            patterns: PatternSet::default(),
            standalone: HashMap::new(),
            is_recursive: false,
            error: None,
        };
        builder.id(document.root(), ScopeId::default());
        let mut nodes = Vec::new();
        while let Some((place, scope)) = builder.waiting.pop_front() {
            let node = builder.node(&place, scope);
            nodes.push(node);
            if let Some(error) = builder.error {
                return Err(error);
            }
        }
        let tracks_evaluated = nodes.iter().any(|node| match node {
            Node::Rules(rules) => {
                rules.array.unevaluated_items.is_some() || rules.object.unevaluated_properties.is_some()
            }
            _ => false,
        });
        let (is_recursive, patterns) = (builder.is_recursive, builder.patterns);
        let plan = Self { nodes, is_recursive, tracks_evaluated, patterns };
        match cost::max_chain_length(&plan) <= MAX_REFERENCE_CHAIN {
            true => Ok(plan),
            false => Err(SchemaError::at("", "too many schemas refer to each other for the same value")),
        }
    }
}

impl Rules {
    /// The schemas that this one has judge the same value.
    fn same_value(&self) -> impl Iterator<Item = NodeId> + '_ {
        let conditional = self.condition.iter().flat_map(|condition| {
            [Some(condition.test), condition.then, condition.otherwise].into_iter().flatten()
        });
        let dependent = self.object.dependencies.iter().filter_map(|dependency| match dependency.demand {
            Demand::Schema(node) => Some(node),
            Demand::Members(_) => None,
        });
        let branches = [&self.any_of, &self.one_of, &self.all_of].into_iter().flatten().copied();
        let referred = self.references.iter().map(|reference| reference.target);
        self.not.into_iter().chain(branches).chain(referred).chain(conditional).chain(dependent)
    }

    /// The schemas that this one has judge parts of the value.
    fn parts(&self) -> impl Iterator<Item = NodeId> + '_ {
        let single = [self.array.items, self.array.unevaluated_items, self.object.additional_properties];
        let single = single
            .into_iter()
            .chain([self.object.unevaluated_properties, self.object.property_names])
            .flatten();
        let named = self.object.properties.iter().map(|(_, node)| *node);
        let matched = self.object.pattern_properties.iter().map(|(_, node)| *node);
        let contained = self.array.contains.iter().map(|contains| contains.item);
        single.chain(self.array.prefix_items.iter().copied()).chain(named).chain(matched).chain(contained)
    }

    /// The schemas that this one leads to, one entry for each way.
    pub(crate) fn children(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.same_value().chain(self.parts())
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
    scopes: Scopes<'b>,
    ids: HashMap<(String, ScopeId), NodeId>,
    waiting: VecDeque<(Place<'d>, ScopeId)>,
    patterns: PatternSet,
    /// Whether Ajv would compile a target by itself, by its pointer.
    standalone: HashMap<String, bool>,
    is_recursive: bool,
    /// The first thing that cannot be judged.
    error: Option<SchemaError>,
}

impl<'d> Builder<'_, 'd> {
    /// Numbers are given in the order in which nodes are built.
    fn id(&mut self, place: Place<'d>, scope: ScopeId) -> NodeId {
        let key = (place.pointer.clone(), scope);
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self.ids.len();
        if id >= MAX_NODES {
            self.fail(&place.pointer, "the schema is too large once its references are followed");
        }
        self.ids.insert(key, id);
        self.waiting.push_back((place, scope));
        id
    }

    fn fail(&mut self, pointer: &str, reason: impl ToString) {
        self.error.get_or_insert_with(|| SchemaError::at(pointer, &reason.to_string()));
    }

    fn node(&mut self, place: &Place<'d>, scope: ScopeId) -> Node {
        match place.schema {
            Value::Bool(false) => Node::Refuse,
            Value::Object(schema) if !schema.is_empty() => {
                Node::Rules(Box::new(self.rules(schema, place, scope)))
            }
            _ => Node::Accept,
        }
    }

    fn rules(&mut self, schema: &'d Map<String, Value>, place: &Place<'d>, scope: ScopeId) -> Rules {
        let base = place.inner_base();
        let scope = self.scopes.enter(scope, &base);
        let here = SchemaScope { schema, pointer: &place.pointer, base: &base, scope };
        Rules {
            types: types::declared(schema),
            leaves: self.leaves(&here),
            references: self.references(&here),
            not: self.one(&here, "not"),
            any_of: self.list(&here, "anyOf"),
            one_of: self.list(&here, "oneOf"),
            all_of: self.list(&here, "allOf"),
            condition: self.condition(&here),
            array: ArrayRules {
                prefix_items: self.list(&here, "prefixItems"),
                items: self.one(&here, "items"),
                contains: self.contains(&here),
                unevaluated_items: self.one(&here, "unevaluatedItems"),
            },
            object: self.object(&here),
        }
    }

    fn object(&mut self, here: &SchemaScope<'_, 'd>) -> ObjectRules {
        let properties = here.schema.get("properties").and_then(Value::as_object);
        ObjectRules {
            required: strings(here.schema.get("required")),
            property_names: self.one(here, "propertyNames"),
            additional_properties: self.one(here, "additionalProperties"),
            dependencies: self.dependencies(here),
            defaults: defaults(here.schema),
            properties: self.map(here, "properties"),
            declared: properties.into_iter().flat_map(Map::keys).cloned().collect(),
            pattern_properties: self.pattern_properties(here),
            unevaluated_properties: self.one(here, "unevaluatedProperties"),
        }
    }

    fn leaves(&mut self, here: &SchemaScope<'_, 'd>) -> Vec<Leaf> {
        let present = LEAVES.iter().filter_map(|keyword| Some((*keyword, here.schema.get(*keyword)?)));
        present
            .filter_map(|(keyword, limit)| match (keyword, limit) {
                ("pattern", Value::String(source)) => {
                    let place = pointer::join(here.pointer, keyword);
                    self.pattern(source, &place).map(|pattern| Leaf::pattern(source, pattern))
                }
                _ => Some(Leaf::new(keyword, limit)),
            })
            .collect()
    }

    fn pattern(&mut self, source: &str, place: &str) -> Option<Arc<Pattern>> {
        match self.patterns.compile(source) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.fail(place, error);
                None
            }
        }
    }

    fn pattern_properties(&mut self, here: &SchemaScope<'_, 'd>) -> Vec<(Arc<Pattern>, NodeId)> {
        let place = pointer::join(here.pointer, "patternProperties");
        let sources = self.map(here, "patternProperties").into_iter();
        sources
            .filter_map(|(source, node)| {
                let pattern = self.pattern(&source, &pointer::join(&place, &source))?;
                Some((pattern, node))
            })
            .collect()
    }

    fn one(&mut self, here: &SchemaScope<'_, 'd>, keyword: &str) -> Option<NodeId> {
        let schema = here.schema.get(keyword)?;
        Some(self.id(here.place(pointer::join(here.pointer, keyword), schema), here.scope))
    }

    fn list(&mut self, here: &SchemaScope<'_, 'd>, keyword: &str) -> Vec<NodeId> {
        let Some(Value::Array(schemas)) = here.schema.get(keyword) else { return Vec::new() };
        let start = pointer::join(here.pointer, keyword);
        let places = schemas.iter().enumerate();
        places
            .map(|(index, schema)| {
                self.id(here.place(pointer::join(&start, &index.to_string()), schema), here.scope)
            })
            .collect()
    }

    fn map(&mut self, here: &SchemaScope<'_, 'd>, keyword: &str) -> Vec<(String, NodeId)> {
        let Some(Value::Object(schemas)) = here.schema.get(keyword) else { return Vec::new() };
        let start = pointer::join(here.pointer, keyword);
        schemas
            .iter()
            .map(|(name, schema)| {
                (name.clone(), self.id(here.place(pointer::join(&start, name), schema), here.scope))
            })
            .collect()
    }

    fn references(&mut self, here: &SchemaScope<'_, 'd>) -> Vec<Reference> {
        let keywords = ["$ref", "$dynamicRef"].into_iter();
        keywords
            .filter_map(|keyword| {
                let reference = here.schema.get(keyword)?.as_str()?;
                match self.target(here, keyword, reference) {
                    Ok(target) => Some(self.reference(target, here.scope)),
                    Err(_) => {
                        self.fail(&pointer::join(here.pointer, keyword), "the reference leads to no schema");
                        None
                    }
                }
            })
            .collect()
    }

    fn target(
        &self,
        here: &SchemaScope<'_, 'd>,
        keyword: &str,
        reference: &str,
    ) -> Result<Place<'d>, ReferenceError> {
        let target = self.document.resolve(here.base, reference)?;
        let anchor = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        match self.scopes.provider(here.scope, anchor) {
            Some(base) if keyword == "$dynamicRef" => {
                // Only a reference that leads to a dynamic anchor as it stands is led elsewhere.
                let plain = self.document.place(here.base, reference)?;
                match plain.schema.get("$dynamicAnchor").and_then(Value::as_str) == Some(anchor) {
                    true => self.document.resolve(base, &format!("#{anchor}")),
                    false => Ok(target),
                }
            }
            _ => Ok(target),
        }
    }

    fn reference(&mut self, target: Place<'d>, scope: ScopeId) -> Reference {
        let is_standalone = match self.standalone.get(&target.pointer) {
            Some(known) => *known,
            None => {
                let is_standalone = target.pointer.is_empty() || document::mentions_reference(target.schema);
                self.standalone.insert(target.pointer.clone(), is_standalone);
                is_standalone
            }
        };
        self.is_recursive |= is_standalone;
        Reference { target: self.id(target, scope), is_standalone }
    }

    fn condition(&mut self, here: &SchemaScope<'_, 'd>) -> Option<Condition> {
        let test = self.one(here, "if")?;
        Some(Condition { test, then: self.one(here, "then"), otherwise: self.one(here, "else") })
    }

    fn contains(&mut self, here: &SchemaScope<'_, 'd>) -> Option<Contains> {
        let bound = |keyword| here.schema.get(keyword).and_then(Value::as_f64).map(|bound| bound as u64);
        let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        Some(Contains { item: self.one(here, "contains")?, min, max })
    }

    fn dependencies(&mut self, here: &SchemaScope<'_, 'd>) -> Vec<Dependency> {
        let mut dependencies = Vec::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(Value::Object(members)) = here.schema.get(keyword) else { continue };
            let start = pointer::join(here.pointer, keyword);
            for (member, demand) in members {
                let demand = match demand {
                    Value::Array(_) => Demand::Members(strings(Some(demand))),
                    schema => {
                        Demand::Schema(self.id(here.place(pointer::join(&start, member), schema), here.scope))
                    }
                };
                dependencies.push(Dependency { keyword, member: member.clone(), demand });
            }
        }
        dependencies
    }
}

/// A schema object with what its subschemas inherit.
struct SchemaScope<'h, 'd> {
    schema: &'d Map<String, Value>,
    pointer: &'h str,
    base: &'h str,
    scope: ScopeId,
}

impl<'d> SchemaScope<'_, 'd> {
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
