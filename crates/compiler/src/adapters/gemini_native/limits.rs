//! Bounds and patterns (rules 11 and 15).

use serde_json::{Number, Value};

use super::form::Kind;
use super::node::Node;
use super::notes::Notes;

/// The limits of a node that mean something for its kind. Those of other kinds never apply to its values, so
/// leaving them out says the same.
pub(super) fn kept(node: &Node<'_>, kind: Kind, notes: &mut Notes) -> Vec<(&'static str, Value)> {
    let keywords: &[&'static str] = match kind {
        Kind::Array => &["minItems", "maxItems"],
        Kind::Object => &["minProperties", "maxProperties"],
        Kind::String => &["minLength", "maxLength"],
        Kind::Number | Kind::Integer => return bounds(node, kind, notes),
        Kind::Boolean => return Vec::new(),
    };
    let mut kept: Vec<(_, Value)> =
        keywords.iter().filter_map(|&k| Some((k, number(node, k)?.clone().into()))).collect();
    if kind == Kind::String
        && let Some(pattern) = node.text("pattern")
    {
        kept.push(("pattern", pattern.into()));
    }
    kept
}

/// `minimum` and `maximum`, with the exclusive bounds moved into them. Between whole numbers nothing is lost.
fn bounds(node: &Node<'_>, kind: Kind, notes: &mut Notes) -> Vec<(&'static str, Value)> {
    let mut bounds = Vec::new();
    let lower = exclusive(node, "exclusiveMinimum", kind, notes)
        .map(|x| if kind == Kind::Integer { above(x) } else { x.clone() });
    if let Some(minimum) = stricter(number(node, "minimum").cloned(), lower, |a, b| a >= b) {
        bounds.push(("minimum", minimum.into()));
    }
    let upper = exclusive(node, "exclusiveMaximum", kind, notes)
        .map(|x| if kind == Kind::Integer { below(x) } else { x.clone() });
    if let Some(maximum) = stricter(number(node, "maximum").cloned(), upper, |a, b| a <= b) {
        bounds.push(("maximum", maximum.into()));
    }
    bounds
}

fn exclusive<'a>(
    node: &Node<'a>,
    keyword: &'static str,
    kind: Kind,
    notes: &mut Notes,
) -> Option<&'a Number> {
    let bound = number(node, keyword)?;
    if kind == Kind::Number
        && let Some(place) = node.get(keyword)
    {
        notes.add(keyword, &place.at);
    }
    Some(bound)
}

fn number<'a>(node: &Node<'a>, keyword: &str) -> Option<&'a Number> {
    match node.get(keyword)?.schema {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

fn stricter(a: Option<Number>, b: Option<Number>, first_wins: fn(f64, f64) -> bool) -> Option<Number> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if first_wins(approximate(&a), approximate(&b)) { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// The first whole number above `x`.
fn above(x: &Number) -> Number {
    let exact = x.as_i64().and_then(|x| x.checked_add(1));
    exact.map_or_else(|| whole(approximate(x).floor() + 1.0), Number::from)
}

/// The last whole number below `x`.
fn below(x: &Number) -> Number {
    let exact = x.as_i64().and_then(|x| x.checked_sub(1));
    exact.map_or_else(|| whole(approximate(x).ceil() - 1.0), Number::from)
}

/// Written without a fraction where it fits. Beyond 2⁵³ a float is as exact as it ever was.
fn whole(x: f64) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if x.abs() <= EXACT {
        return Number::from(x as i64);
    }
    Number::from_f64(x).unwrap_or_else(|| Number::from(0))
}

fn approximate(number: &Number) -> f64 {
    number.as_f64().unwrap_or(0.0)
}
