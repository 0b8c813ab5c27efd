//! What an author has made of a file, with what has changed at the server put in.

use serde_json::{Map, Value};

/// Values that both sides have changed: the author's stays.
pub(super) type Conflicts = Vec<String>;

/// `ours` with the changes from `base` to `theirs`. Where ours has changed too, ours stays, and the place is told.
pub(super) fn merge(
    base: &Value,
    theirs: &Value,
    ours: &Value,
    pointer: &str,
    conflicts: &mut Conflicts,
) -> Value {
    if base == theirs || ours == theirs {
        return ours.clone();
    }
    if ours == base {
        return theirs.clone();
    }
    if let (Value::Object(base), Value::Object(theirs), Value::Object(ours)) = (base, theirs, ours) {
        return merge_objects(base, theirs, ours, pointer, conflicts).into();
    }
    conflicts.push(if pointer.is_empty() { "/".into() } else { pointer.into() });
    ours.clone()
}

fn merge_objects(
    base: &Map<String, Value>,
    theirs: &Map<String, Value>,
    ours: &Map<String, Value>,
    pointer: &str,
    conflicts: &mut Conflicts,
) -> Map<String, Value> {
    let mut merged = Map::new();
    let added = theirs.keys().filter(|name| !ours.contains_key(*name));
    for name in ours.keys().chain(added) {
        let here = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        let value = match (base.get(name), theirs.get(name), ours.get(name)) {
            (Some(base), Some(theirs), Some(ours)) => Some(merge(base, theirs, ours, &here, conflicts)),
            // Both have added it.
            (None, Some(theirs), Some(ours)) => {
                if theirs != ours {
                    conflicts.push(here);
                }
                Some(ours.clone())
            }
            (None, None, ours) => ours.cloned(),
            (None, Some(theirs), None) => Some(theirs.clone()),
            // Removed at the server: it goes, unless the author has changed it.
            (Some(base), None, Some(ours)) if base == ours => None,
            (Some(_), None, Some(ours)) => {
                conflicts.push(here);
                Some(ours.clone())
            }
            // Removed by the author.
            (Some(base), Some(theirs), None) => {
                if base != theirs {
                    conflicts.push(here);
                }
                None
            }
            (Some(_), None, None) => None,
        };
        if let Some(value) = value {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(base: Value, theirs: Value, ours: Value) -> (Value, Conflicts) {
        let mut conflicts = Conflicts::new();
        let merged = merge(&base, &theirs, &ours, "", &mut conflicts);
        (merged, conflicts)
    }

    #[test]
    fn changes_of_both_sides_are_kept_where_they_do_not_meet() {
        let base = json!({ "a": { "type": "string" }, "b": 1, "gone": true });
        let theirs = json!({ "a": { "type": "string", "format": "uri" }, "b": 1, "new": 2 });
        let ours = json!({ "a": { "type": "string", "maxLength": 9 }, "b": 7, "gone": true });
        let expected =
            json!({ "a": { "type": "string", "maxLength": 9, "format": "uri" }, "b": 7, "new": 2 });
        assert_eq!(merged(base, theirs, ours), (expected, vec![]));
    }

    #[test]
    fn where_both_have_changed_something_ours_stays_and_the_place_is_told() {
        let (value, conflicts) = merged(
            json!({ "a": { "x/y": 1 }, "l": [1] }),
            json!({ "a": { "x/y": 2 }, "l": [2] }),
            json!({ "a": { "x/y": 3 } }),
        );
        assert_eq!(value, json!({ "a": { "x/y": 3 } }));
        assert_eq!(conflicts, ["/a/x~1y", "/l"]);
    }

    fn small() -> impl Strategy<Value = Value> {
        let leaf = (0..3).prop_map(Value::from);
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        })
    }

    proptest! {
        #[test]
        fn an_unedited_file_becomes_theirs_and_an_unchanged_server_leaves_ours(base in small(), other in small()) {
            prop_assert_eq!(merged(base.clone(), other.clone(), base.clone()), (other.clone(), vec![]));
            prop_assert_eq!(merged(base.clone(), base.clone(), other.clone()), (other.clone(), vec![]));
        }
    }
}
