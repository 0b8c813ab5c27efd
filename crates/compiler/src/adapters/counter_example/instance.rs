//! Builds a value that a schema accepts, as far as that is easy. A caller that needs certainty asks the schema.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::route::Route;
use super::text;
use super::view::View;

const MAX_DEPTH: usize = 24;
const MAX_ITEMS: usize = 32;
/// Values in one instance. Lists of lists that refer to themselves would double with every level.
const MAX_VALUES: usize = 4_096;

/// Builds instances of the schemas of one document.
pub(super) struct Generator<'a> {
    document: &'a Value,
    /// How many values the instance at hand may still have.
    left: Cell<usize>,
}

/// How far inside the instance, and whether on the way to the place that is looked for.
#[derive(Clone, Copy)]
struct Level<'r, 'a> {
    depth: usize,
    route: Option<&'r Route<'a>>,
}

impl<'r, 'a> Level<'r, 'a> {
    /// One level deeper. Detours are for the route alone: a schema may be met again beside or beyond it.
    fn deeper(self, on_route: bool) -> Self {
        Self { depth: self.depth + 1, route: self.route.filter(|_| on_route) }
    }

    /// The route, while it has further to go.
    fn ahead(self) -> Option<&'r Route<'a>> {
        self.route.filter(|route| self.depth < route.length())
    }
}

impl<'a> Generator<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, left: Cell::new(MAX_VALUES) }
    }

    /// The least that `schema` asks for.
    pub(super) fn instance(&self, schema: &'a Value) -> Value {
        self.left.set(MAX_VALUES);
        self.instance_at(schema, Level { depth: 0, route: None })
    }

    /// An instance of the whole document that has a value at the end of `route`.
    pub(super) fn toward(&self, route: &Route<'a>) -> Value {
        self.left.set(MAX_VALUES);
        self.instance_at(self.document, Level { depth: 0, route: Some(route) })
    }

    pub(super) fn view(&self, schema: &'a Value) -> View<'a> {
        View::new(self.document, schema, None)
    }

    /// The least that a view asks for.
    pub(super) fn of_view(&self, view: &View<'a>) -> Value {
        self.left.set(MAX_VALUES);
        self.of_view_at(view, Level { depth: 0, route: None })
    }

    fn instance_at(&self, schema: &'a Value, level: Level<'_, 'a>) -> Value {
        if level.depth > MAX_DEPTH || self.left.get() == 0 {
            return Value::Null;
        }
        self.left.set(self.left.get() - 1);
        let view = View::new(self.document, schema, level.route.map(|route| &route.detours));
        self.of_view_at(&view, level)
    }

    fn of_view_at(&self, view: &View<'a>, level: Level<'_, 'a>) -> Value {
        if let Some(only) = view.get("const") {
            return only.clone();
        }
        if let Some(values) = view.get("enum").and_then(Value::as_array) {
            let kind = view.kind();
            let typed = values.iter().find(|value| view.has("type") && is_of(value, kind));
            return typed.or(values.first()).cloned().unwrap_or(Value::Null);
        }
        match view.kind() {
            "object" => self.object(view, level),
            "array" => self.array(view, level),
            "integer" => number(view, true),
            "number" => number(view, false),
            "boolean" => true.into(),
            "null" => Value::Null,
            _ => text::sound(view).into(),
        }
    }

    fn object(&self, view: &View<'a>, level: Level<'_, 'a>) -> Value {
        let properties = view.properties();
        let mut object = Map::new();
        let mut names = view.required();
        if level.ahead().is_some() {
            names.extend(view.wanted());
        }
        for name in names {
            self.add_property(&mut object, name, view, level);
        }
        let fewest = view.most("minProperties").unwrap_or(0.0) as usize;
        let declared = properties.iter().map(|(name, _)| (*name).to_owned());
        let spare = (0..fewest.min(MAX_ITEMS)).map(|index| format!("key{index}"));
        for name in declared.chain(spare) {
            if object.len() >= fewest {
                break;
            }
            self.add_property(&mut object, &name, view, level);
        }
        Value::Object(object)
    }

    /// Adds a property and what its presence demands.
    fn add_property(
        &self,
        object: &mut Map<String, Value>,
        name: &str,
        view: &View<'a>,
        level: Level<'_, 'a>,
    ) {
        if object.contains_key(name) {
            return;
        }
        let declared =
            view.properties().into_iter().find(|(known, _)| *known == name).map(|(_, schema)| schema);
        let schema = declared.or_else(|| view.get("additionalProperties"));
        let value = schema.map_or_else(
            || "x".into(),
            |schema| {
                let on_route = level.ahead().is_some() && view.wanted().contains(&name);
                self.instance_at(schema, level.deeper(on_route))
            },
        );
        object.insert(name.to_owned(), value);
        let dependent = view.get("dependentRequired").and_then(|map| map.get(name)).and_then(Value::as_array);
        for other in dependent.into_iter().flatten().filter_map(Value::as_str) {
            self.add_property(object, other, view, level);
        }
    }

    fn array(&self, view: &View<'a>, level: Level<'_, 'a>) -> Value {
        let tuple = view.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wanted = level.ahead().and_then(|_| view.wanted_item());
        let needed = wanted.map_or(0, |index| index + 1).max(usize::from(view.has("contains")));
        let fewest = view.most("minItems").unwrap_or(0.0) as usize;
        let unique = view.get("uniqueItems") == Some(&Value::Bool(true));
        let mut items: Vec<Value> = Vec::new();
        for index in 0..fewest.max(needed).min(MAX_ITEMS) {
            let schema = tuple.get(index).or_else(|| view.get("items")).or_else(|| view.get("contains"));
            let level = level.deeper(wanted == Some(index));
            let mut item = schema.map_or_else(|| "x".into(), |schema| self.instance_at(schema, level));
            if unique && items.contains(&item) {
                item = different(&item, index);
            }
            items.push(item);
        }
        Value::Array(items)
    }
}

/// A number within the bounds, a multiple where that is asked.
pub(super) fn number(view: &View<'_>, whole: bool) -> Value {
    let lower = view.most("minimum");
    let above = view.most("exclusiveMinimum");
    let upper = view.least("maximum");
    let below = view.least("exclusiveMaximum");
    let pace = if whole { 1.0 } else { 0.5 };
    let mut number = match (above, lower, below, upper) {
        (Some(above), lower, ..) => (above + pace).max(lower.unwrap_or(f64::MIN)),
        (None, Some(lower), ..) => lower,
        (None, None, Some(below), _) => (below - pace).min(1.0),
        (None, None, None, Some(upper)) => upper.min(1.0),
        _ => 1.0,
    };
    if !whole
        && let (Some(above), Some(end)) = (above, below.or(upper))
        && number >= end
    {
        number = f64::midpoint(above, end);
    }
    if whole {
        number = number.ceil();
    }
    if let Some(factor) = view.get("multipleOf").and_then(Value::as_f64).filter(|factor| *factor > 0.0) {
        number = (number / factor).ceil() * factor;
    }
    from_f64(number)
}

/// Without a fraction where there is none. .
pub(super) fn from_f64(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return (number as i64).into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn different(item: &Value, index: usize) -> Value {
    match item {
        Value::String(text) => format!("{text}{index}").into(),
        Value::Number(number) => from_f64(number.as_f64().unwrap_or(0.0) + index as f64),
        Value::Bool(value) => (!value).into(),
        other => other.clone(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}
