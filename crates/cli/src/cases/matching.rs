//! Whether a value has at least what a case expects of it.

use serde_json::Value;

/// Says where `found` lacks something of `expected`, or nothing when it has it all.
///
/// Listed keys must be there and match, each element of a listed array must match a different element, and
/// numbers compare by value.
pub(crate) fn difference(expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().find_map(|(key, expected)| match found.get(key) {
                Some(found) => difference(expected, found).map(|what| format!("{key}: {what}")),
                None => Some(format!("{key} is missing")),
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            let all = pairs_up(expected, found);
            (!all).then(|| format!("expected elements {} in {}", list(expected), list(found)))
        }
        (Value::Number(expected), Value::Number(found)) if expected.as_f64() == found.as_f64() => None,
        _ if expected == found => None,
        _ => Some(format!("expected {expected}, found {found}")),
    }
}

/// Whether each expected element can be given a found one of its own: a matching, grown by one augmenting path for
/// each expected element.
fn pairs_up(expected: &[Value], found: &[Value]) -> bool {
    let fits: Vec<Vec<usize>> = expected
        .iter()
        .map(|expected| {
            (0..found.len()).filter(|index| difference(expected, &found[*index]).is_none()).collect()
        })
        .collect();
    let mut given_to = vec![None; found.len()];
    (0..expected.len()).all(|element| assign(element, &fits, &mut given_to, &mut vec![false; found.len()]))
}

fn assign(element: usize, fits: &[Vec<usize>], given_to: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for &candidate in &fits[element] {
        if std::mem::replace(&mut tried[candidate], true) {
            continue;
        }
        let is_free = match given_to[candidate] {
            None => true,
            Some(other) => assign(other, fits, given_to, tried),
        };
        if is_free {
            given_to[candidate] = Some(element);
            return true;
        }
    }
    false
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
