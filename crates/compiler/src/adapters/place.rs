//! Where a schema stands inside the document it belongs to.

use serde_json::Value;

/// `parent` with one more step, escaped as a JSON pointer asks.
pub(super) fn step(parent: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{parent}/{key}")
}

/// A step of a pointer inside a `$ref` as the key that it names.
pub(super) fn unescape(step: &str) -> String {
    let step = percent_decoded(step).unwrap_or_else(|| step.to_owned());
    step.replace("~1", "/").replace("~0", "~")
}

/// What a `$ref` names inside `document`, with its pointer. `None` when it leaves the document or names nothing.
pub(super) fn follow<'a>(document: &'a Value, reference: &str) -> Option<(&'a Value, String)> {
    let fragment = percent_decoded(reference.strip_prefix('#')?)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        let target = document.pointer(&fragment)?;
        return Some((target, fragment));
    }
    anchored(document, &fragment)
}

/// `place`, or the nearest place around it that `document` has.
pub(super) fn nearest(document: &Value, place: &str) -> String {
    let mut place = place;
    while document.pointer(place).is_none() {
        place = place.rsplit_once('/').map_or("", |(around, _)| around);
    }
    place.to_owned()
}

/// Anchors are rare enough to be searched for each time.
fn anchored<'a>(document: &'a Value, anchor: &str) -> Option<(&'a Value, String)> {
    let mut open = vec![(document, String::new())];
    while let Some((value, at)) = open.pop() {
        match value {
            Value::Object(map) => {
                if map.get("$anchor").and_then(Value::as_str) == Some(anchor) {
                    return Some((value, at));
                }
                open.extend(map.iter().map(|(key, child)| (child, step(&at, key))));
            }
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(index, child)| (child, format!("{at}/{index}"))));
            }
            _ => {}
        }
    }
    None
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_a_pointer_an_anchor_or_the_whole_document() {
        let document = json!({ "$defs": { "a/b": { "$anchor": "here" }, "c d": 1 } });
        assert_eq!(follow(&document, "#").unwrap().0, &document);
        assert_eq!(follow(&document, "#/$defs/a~1b").unwrap().1, "/$defs/a~1b");
        assert_eq!(follow(&document, "#/$defs/c%20d").unwrap().1, "/$defs/c d");
        assert_eq!(follow(&document, "#here").unwrap().1, "/$defs/a~1b");
    }

    #[test]
    fn a_reference_that_leaves_the_document_names_nothing() {
        let document = json!({});
        for reference in ["other.json", "https://example.com/a#/b", "#/nowhere", "#nowhere", "#/%", "#/%zz"] {
            assert_eq!(follow(&document, reference), None, "{reference}");
        }
    }
}
