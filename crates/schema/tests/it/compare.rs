//! Comparing with what another program recorded.

use quarterdeck_schema::Violation;
use serde_json::Value;

/// Equality that takes `10.0` for `10`, as a program that prints both alike must be read.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// `(path, keyword)` pairs in an order of their own.
pub(crate) fn pairs(violations: &[Violation]) -> Vec<(String, String)> {
    sorted(violations.iter().map(|violation| (violation.path.clone(), violation.keyword.clone())).collect())
}

/// The same of a recorded error list.
pub(crate) fn recorded_pairs(errors: &Value) -> Vec<(String, String)> {
    let text = |error: &Value, field: &str| error[field].as_str().unwrap_or_default().to_owned();
    let errors = errors.as_array().map(Vec::as_slice).unwrap_or_default();
    sorted(errors.iter().map(|error| (text(error, "instancePath"), text(error, "keyword"))).collect())
}

/// The first of all differences in full, and how many there are.
pub(crate) fn summary(what: &str, differing: &[String], total: usize) -> String {
    let shown: Vec<_> = differing.iter().take(8).map(String::as_str).collect();
    format!("{what}: {} of {total} differ\n{}", differing.len(), shown.join("\n"))
}

fn sorted(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    pairs.sort();
    pairs
}
