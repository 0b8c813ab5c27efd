//! Changes of the parameters: which of them refuse a call that was accepted.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::Effect as Known;

/// What a change does to callers, as far as two schemas tell when they are read side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is plain to see.
    Certain(Known),
    /// It may refuse what was accepted.
    Open,
}

const BREAKS: Effect = Effect::Certain(Known::Breaks);
const CHANGES: Effect = Effect::Certain(Known::Changes);
const ADDS: Effect = Effect::Certain(Known::Adds);

/// Far beyond any real schema; ends references that lead in a circle.
const MAX_DEPTH: usize = 32;

/// Annotations: they refuse nothing.
const WORDS: [&str; 9] =
    ["description", "title", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id"];
/// Keywords that refuse more the larger they are.
const LOWER_BOUNDS: [&str; 6] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
/// Keywords that refuse more the smaller they are.
const UPPER_BOUNDS: [&str; 6] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
/// Keywords that are compared in a way of their own.
const STRUCTURE: [&str; 12] = [
    "nullable",
    "type",
    "properties",
    "required",
    "enum",
    "const",
    "items",
    "additionalProperties",
    "default",
    "$defs",
    "definitions",
    "$ref",
];

pub(super) fn compare(old: &Value, new: &Value) -> Vec<(Effect, String)> {
    let mut comparison =
        Comparison { old_root: old, new_root: new, seen: BTreeSet::new(), changes: Vec::new() };
    comparison.schema("", old, new, 0);
    comparison.changes
}

struct Comparison<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
    /// Pairs of references that were compared already; a definition is told about once.
    seen: BTreeSet<(&'a str, &'a str)>,
    changes: Vec<(Effect, String)>,
}

impl<'a> Comparison<'a> {
    fn schema(&mut self, at: &str, old: &'a Value, new: &'a Value, depth: usize) {
        let reference = |schema: &'a Value| schema.get("$ref").and_then(Value::as_str);
        if let (Some(old), Some(new)) = (reference(old), reference(new))
            && !self.seen.insert((old, new))
        {
            return;
        }
        let (old, new) = (resolve(self.old_root, old), resolve(self.new_root, new));
        if depth > MAX_DEPTH || (old == new && self.old_root.get("$defs") == self.new_root.get("$defs")) {
            return;
        }
        let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
            if old != new {
                self.note(Effect::Open, at, "the schema changed");
            }
            return;
        };
        self.types(at, old, new);
        self.values(at, old, new);
        self.bounds(at, old, new);
        self.properties(at, old, new, depth);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.schema(&format!("{}[]", name(at)), old, new, depth + 1);
        } else if new.contains_key("items") && !old.contains_key("items") {
            self.note(Effect::Open, at, "elements are now held to a schema");
        }
        self.others(at, old, new);
    }

    fn types(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let (Some(allowed), before) = (types(new), types(old)) else { return };
        let Some(before) = before else {
            let allowed: Vec<_> = allowed.into_iter().collect();
            return self.note(Effect::Open, at, &format!("must now be {}", allowed.join(" or ")));
        };
        let more: Vec<_> = allowed.iter().copied().filter(|kind| !admits_type(&before, kind)).collect();
        if !more.is_empty() {
            self.note(ADDS, at, &format!("may now be {}", more.join(" or ")));
        }
        let lost: Vec<_> = before.into_iter().filter(|kind| !admits_type(&allowed, kind)).collect();
        if !lost.is_empty() {
            let allowed: Vec<_> = allowed.into_iter().collect();
            self.breaks(
                at,
                &format!("must now be {}, no longer {}", allowed.join(" or "), lost.join(" or ")),
            );
        }
    }

    fn values<'v>(&mut self, at: &str, old: &'v Map<String, Value>, new: &'v Map<String, Value>) {
        match (values(old), values(new)) {
            (Some(old), Some(new)) => {
                let known = |values: &[&'v Value]| values.iter().copied().collect::<HashSet<_>>();
                let (before, after) = (known(&old), known(&new));
                let gone: Vec<_> = old
                    .iter()
                    .filter(|value| !after.contains(*value))
                    .map(|value| value.to_string())
                    .collect();
                if !gone.is_empty() {
                    self.breaks(at, &format!("no longer takes {}", gone.join(", ")));
                }
                let more: Vec<_> = new
                    .iter()
                    .filter(|value| !before.contains(*value))
                    .map(|value| value.to_string())
                    .collect();
                if !more.is_empty() {
                    self.note(ADDS, at, &format!("now takes {}", more.join(", ")));
                }
            }
            (None, Some(_)) => self.breaks(at, "takes only listed values now"),
            (Some(_), None) => self.note(ADDS, at, "takes more than the listed values now"),
            (None, None) => {}
        }
        let defaults = (old.get("default"), new.get("default"));
        if defaults.0 != defaults.1 {
            let told = |default: Option<&Value>| default.map_or("nothing".to_owned(), Value::to_string);
            let what = format!("the default was {} and is {}", told(defaults.0), told(defaults.1));
            self.note(CHANGES, at, &what);
        }
    }

    fn bounds(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let number = |schema: &Map<String, Value>, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        for keyword in LOWER_BOUNDS.into_iter().chain(UPPER_BOUNDS) {
            let tighter =
                |was: f64, is: f64| if LOWER_BOUNDS.contains(&keyword) { is > was } else { is < was };
            match (number(old, keyword), number(new, keyword)) {
                (None, Some(is)) => {
                    let effect = if is_implied(old, keyword, is) { CHANGES } else { BREAKS };
                    self.note(effect, at, &format!("`{keyword}` is now {is}"));
                }
                (Some(was), Some(is)) if tighter(was, is) => {
                    self.breaks(at, &format!("`{keyword}` was {was} and is {is}"));
                }
                (Some(was), Some(is)) if was != is => {
                    self.note(ADDS, at, &format!("`{keyword}` was {was} and is {is}"));
                }
                (Some(was), None) => self.note(ADDS, at, &format!("`{keyword}` was {was} and is gone")),
                _ => {}
            }
        }
    }

    fn properties(
        &mut self,
        at: &str,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        depth: usize,
    ) {
        let (was, is) = (declared(old), declared(new));
        let is_gone = |name: &&String| !is.is_some_and(|is| is.contains_key(*name));
        for property in was.into_iter().flat_map(Map::keys).filter(is_gone) {
            let effect = if is_closed(new) { BREAKS } else { CHANGES };
            self.note(effect, &join(at, property), "is gone");
        }
        for (property, schema) in is.into_iter().flatten() {
            match was.and_then(|was| was.get(property)) {
                Some(before) => self.schema(&join(at, property), before, schema, depth + 1),
                None if !requires(new, property) => {
                    self.note(ADDS, &join(at, property), "is new and optional")
                }
                None => {}
            }
        }
        self.required_properties(at, old, new);
        self.undeclared_properties(at, old, new, depth);
    }

    fn required_properties(&mut self, at: &str, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        let (was, is) = (declared(old), declared(new));
        let has = |schemas: Option<&Map<String, Value>>, name: &str| {
            schemas.is_some_and(|schemas| schemas.contains_key(name))
        };
        // A default is filled in before anything is checked, so its absence refuses nothing.
        let has_default = |schemas: Option<&Map<String, Value>>, name: &str| {
            schemas
                .and_then(|schemas| schemas.get(name))
                .is_some_and(|schema| schema.get("default").is_some())
        };
        for property in required(new).filter(|name| !requires(old, name)) {
            let what = if has(was, property) { "is now required" } else { "is new and required" };
            let effect = if has_default(is, property) { CHANGES } else { BREAKS };
            self.note(effect, &join(at, property), what);
        }
        for property in required(new).filter(|name| requires(old, name)) {
            if has_default(was, property) && !has_default(is, property) {
                self.breaks(&join(at, property), "is required and has lost its default");
            }
        }
        for property in required(old).filter(|name| !requires(new, name) && has(is, name)) {
            self.note(ADDS, &join(at, property), "is now optional");
        }
    }

    fn undeclared_properties(
        &mut self,
        at: &str,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        depth: usize,
    ) {
        if is_closed(new) && !is_closed(old) {
            self.breaks(at, "properties that are not declared are now refused");
        } else if is_closed(old) && !is_closed(new) {
            self.note(ADDS, at, "properties that are not declared are now accepted");
        }
        let map =
            |schema: &'a Map<String, Value>| schema.get("additionalProperties").filter(|map| map.is_object());
        match (map(old), map(new)) {
            (Some(was), Some(is)) => self.schema(&format!("{}.*", name(at)), was, is, depth + 1),
            (None, Some(_)) if !is_closed(old) => {
                self.note(Effect::Open, at, "properties that are not declared are now held to a schema");
            }
            (Some(_), None) if !is_closed(new) => {
                self.note(ADDS, at, "properties that are not declared may now be anything");
            }
            _ => {}
        }
    }

    /// Everything that is not understood here.
    fn others(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let is_other = |keyword: &str| {
            ![&WORDS[..], &LOWER_BOUNDS, &UPPER_BOUNDS, &STRUCTURE]
                .iter()
                .any(|known| known.contains(&keyword))
        };
        let keywords: BTreeSet<&String> =
            old.keys().chain(new.keys()).filter(|keyword| is_other(keyword)).collect();
        for keyword in keywords {
            match (old.get(keyword), new.get(keyword)) {
                (Some(_), None) => self.note(ADDS, at, &format!("`{keyword}` is gone")),
                (None, Some(_)) => self.note(Effect::Open, at, &format!("`{keyword}` is new")),
                (was, is) if was != is => self.note(Effect::Open, at, &format!("`{keyword}` changed")),
                _ => {}
            }
        }
        if WORDS.iter().any(|keyword| old.get(*keyword) != new.get(*keyword)) && !at.is_empty() {
            self.note(CHANGES, at, "is described differently");
        }
    }

    fn breaks(&mut self, at: &str, what: &str) {
        self.note(BREAKS, at, what);
    }

    fn note(&mut self, effect: Effect, at: &str, what: &str) {
        self.changes.push((effect, format!("{}: {what}", name(at))));
    }
}

/// Whether the old schema says as much as a bound that is new, in other words.
fn is_implied(old: &Map<String, Value>, keyword: &str, bound: f64) -> bool {
    let number = |keyword: &str| old.get(keyword).and_then(Value::as_f64);
    // The next value that an exclusive bound lets through: for integers a whole step further.
    let step = if old.get("type") == Some(&Value::from("integer")) { 1.0 } else { 0.0 };
    match keyword {
        "minLength" | "minItems" | "minProperties" | "minContains" => bound <= 0.0,
        "minimum" => number("exclusiveMinimum")
            .is_some_and(|was| was >= bound || (step > 0.0 && was.floor() + step >= bound)),
        "maximum" => number("exclusiveMaximum")
            .is_some_and(|was| was <= bound || (step > 0.0 && was.ceil() - step <= bound)),
        "exclusiveMinimum" => number("minimum").is_some_and(|was| was > bound),
        "exclusiveMaximum" => number("maximum").is_some_and(|was| was < bound),
        "maxProperties" => {
            let closed = old.get("additionalProperties") == Some(&Value::Bool(false));
            let declared = old.get("properties").and_then(Value::as_object).map_or(0, Map::len);
            closed && declared as f64 <= bound
        }
        _ => false,
    }
}

fn name(at: &str) -> &str {
    if at.is_empty() { "parameters" } else { at }
}

fn join(at: &str, property: &str) -> String {
    if at.is_empty() { property.to_owned() } else { format!("{at}.{property}") }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let target =
            schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn types(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    let mut types: BTreeSet<&str> = match schema.get("type")? {
        Value::String(kind) => [kind.as_str()].into(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        types.insert("null");
    }
    Some(types)
}

fn admits_type(allowed: &BTreeSet<&str>, kind: &str) -> bool {
    allowed.contains(kind) || (kind == "integer" && allowed.contains("number"))
}

fn values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn declared(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn requires(schema: &Map<String, Value>, property: &str) -> bool {
    required(schema).any(|name| name == property)
}
