//! Whether a value has at least what a case expects of it.

use serde_json::Value;

/// Says where `found` lacks something of `expected`, or nothing when it has it all.
///
/// Listed keys must be there and match, each element of a listed array must match a different element, and
/// numbers compare by value.
pub(super) fn difference(expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().find_map(|(key, expected)| match found.get(key) {
                Some(found) => difference(expected, found).map(|what| format!("{key}: {what}")),
                None => Some(format!("{key} is missing")),
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            let all = pairs_up(expected, found, &mut vec![false; found.len()]);
            (!all).then(|| format!("expected elements {} in {}", list(expected), list(found)))
        }
        (Value::Number(expected), Value::Number(found)) if expected.as_f64() == found.as_f64() => None,
        _ if expected == found => None,
        _ => Some(format!("expected {expected}, found {found}")),
    }
}

/// Tries every way to give each expected element a found one of its own.
fn pairs_up(expected: &[Value], found: &[Value], taken: &mut Vec<bool>) -> bool {
    let Some((first, rest)) = expected.split_first() else { return true };
    (0..found.len()).any(|candidate| {
        if taken[candidate] || difference(first, &found[candidate]).is_some() {
            return false;
        }
        taken[candidate] = true;
        let fits = pairs_up(rest, found, taken);
        taken[candidate] = fits;
        fits
    })
}

fn list(values: &[Value]) -> String {
    Value::from(values.to_vec()).to_string()
}

#[cfg(test)]
mod tests {
    use super::difference;
    use serde_json::json;

    #[test]
    fn listed_keys_and_elements_are_enough() {
        let found = json!({ "ok": true, "data": { "list": [{ "a": 1 }, { "a": 2, "b": 3 }], "more": null } });
        assert_eq!(difference(&json!({ "data": { "list": [{ "a": 2.0 }] } }), &found), None);
        assert!(difference(&json!({ "data": { "list": [{ "a": 3 }] } }), &found).is_some());
        assert!(difference(&json!({ "missing": 1 }), &found).is_some());
    }

    #[test]
    fn each_expected_element_needs_one_of_its_own() {
        assert!(difference(&json!([{ "a": 1 }, { "a": 1 }]), &json!([{ "a": 1 }, { "a": 2 }])).is_some());
        assert_eq!(difference(&json!([{}, { "a": 1 }]), &json!([{ "a": 1 }, { "a": 2 }])), None);
    }
}
