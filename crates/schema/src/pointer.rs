//! JSON pointers (RFC 6901), the way this crate names places in schemas and in arguments.

use serde_json::Value;

/// `parent` with one more segment.
pub(crate) fn join(parent: &str, segment: &str) -> String {
    let mut pointer = String::with_capacity(parent.len() + segment.len() + 1);
    pointer.push_str(parent);
    push(&mut pointer, segment);
    pointer
}

/// Adds one segment in place.
pub(crate) fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            _ => pointer.push(character),
        }
    }
}

/// The segments of `pointer`, unescaped.
pub(crate) fn segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"))
}

/// One step down from `value`.
pub(crate) fn child<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_and_tildes_survive_the_round_trip() {
        let pointer = join("/properties", "a/b~c");
        assert_eq!(pointer, "/properties/a~1b~0c");
        assert_eq!(segments(&pointer).collect::<Vec<_>>(), ["properties", "a/b~c"]);
    }
}
