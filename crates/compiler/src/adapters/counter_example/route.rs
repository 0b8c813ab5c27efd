//! How to reach a place in a schema with an instance of that schema.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::adapters::place::{follow, step};

const MAX_SCHEMAS: usize = 4_000;

/// Every schema that values can be judged by, and the shortest way there.
pub(super) struct Routes<'a> {
    by_pointer: HashMap<String, ReachedSchema<'a>>,
    order: Vec<String>,
}

/// A way to one place.
pub(super) struct Route<'a> {
    /// The schema that judges what stands at the place, and its pointer.
    pub(super) schema: &'a Value,
    pub(super) at: String,
    /// The keyword of that schema that the place names, or nothing.
    pub(super) keyword: &'a str,
    /// Where an instance has the value that the schema judges.
    pub(super) instance: String,
    pub(super) detours: Detours<'a>,
}

impl Route<'_> {
    /// How many steps the route takes inside the instance.
    pub(super) fn length(&self) -> usize {
        self.instance.matches('/').count()
    }
}

/// What an instance must do on its way, by the address of the schema that leaves a choice.
pub(super) type Detours<'a> = HashMap<*const Value, Detour<'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detour<'a> {
    /// Have this property, even if it is optional.
    Property(&'a str),
    /// Have an item at this index.
    Item(usize),
    /// Follow this branch of this union.
    Branch(&'a str, usize),
}

struct ReachedSchema<'a> {
    schema: &'a Value,
    /// The schema before this one, and what leads from there to here; nothing for references and `allOf`.
    from: Option<(String, Option<Detour<'a>>)>,
}

impl<'a> Routes<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        let mut routes = Self { by_pointer: HashMap::new(), order: Vec::new() };
        let mut open = VecDeque::from([(String::new(), ReachedSchema { schema: document, from: None })]);
        while let Some((at, reached)) = open.pop_front() {
            if routes.order.len() >= MAX_SCHEMAS || routes.by_pointer.contains_key(&at) {
                continue;
            }
            for (next, schema, detour) in exits(document, reached.schema, &at) {
                open.push_back((next, ReachedSchema { schema, from: Some((at.clone(), detour)) }));
            }
            routes.order.push(at.clone());
            routes.by_pointer.insert(at, reached);
        }
        routes
    }

    /// The pointers of all schemas, nearest first.
    pub(super) fn places(&self) -> Vec<String> {
        self.order.clone()
    }

    /// The way to a schema, or to the schema that has the keyword which `place` names.
    pub(super) fn to(&self, place: &'a str) -> Option<Route<'a>> {
        let (at, keyword) = if self.by_pointer.contains_key(place) {
            (place, "")
        } else {
            let (at, keyword) = place.rsplit_once('/')?;
            self.by_pointer.contains_key(at).then_some((at, keyword))?
        };
        let mut detours = Detours::new();
        let mut steps = Vec::new();
        let mut current = at;
        while let Some((before, detour)) =
            self.by_pointer.get(current).and_then(|reached| reached.from.as_ref())
        {
            if let Some(detour) = detour {
                detours.insert(std::ptr::from_ref(self.by_pointer.get(before)?.schema), *detour);
                match detour {
                    Detour::Property(name) => steps.push(step("", name)),
                    Detour::Item(index) => steps.push(format!("/{index}")),
                    Detour::Branch(..) => {}
                }
            }
            current = before;
        }
        steps.reverse();
        let schema = self.by_pointer.get(at)?.schema;
        Some(Route { schema, at: at.to_owned(), keyword, instance: steps.concat(), detours })
    }
}

/// The schemas that judge a value, or a part of it, when `schema` does.
fn exits<'a>(
    document: &'a Value,
    schema: &'a Value,
    at: &str,
) -> Vec<(String, &'a Value, Option<Detour<'a>>)> {
    let mut exits = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let here = step(at, keyword);
        let list = value.as_array().into_iter().flatten().enumerate();
        match keyword.as_str() {
            "$ref" => {
                let target = value.as_str().and_then(|reference| follow(document, reference));
                exits.extend(target.map(|(target, at)| (at, target, None)));
            }
            "properties" => {
                let named = value.as_object().into_iter().flatten();
                exits.extend(
                    named.map(|(name, child)| (step(&here, name), child, Some(Detour::Property(name)))),
                );
            }
            "items" if value.is_object() => {
                let index = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                exits.push((here, value, Some(Detour::Item(index))));
            }
            "prefixItems" => {
                exits.extend(list.map(|(i, child)| (format!("{here}/{i}"), child, Some(Detour::Item(i)))))
            }
            "allOf" => exits.extend(list.map(|(i, child)| (format!("{here}/{i}"), child, None))),
            "anyOf" | "oneOf" => {
                exits.extend(
                    list.map(|(i, child)| (format!("{here}/{i}"), child, Some(Detour::Branch(keyword, i)))),
                );
            }
            _ => {}
        }
    }
    exits
}
