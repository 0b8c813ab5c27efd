//! The arguments of calls: text when they arrive, an object when they are sent back.

use quarterdeck_contracts::{CallArguments, parse_json};
use serde_json::{Map, Value, json};

/// Of one call.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// How much of a longer text is kept, to see what it was.
const KEPT_BYTES: usize = 4 << 10;

/// Arguments that arrive in fragments.
#[derive(Debug, Default)]
pub(crate) struct ArgumentText {
    text: String,
    too_long: bool,
}

impl ArgumentText {
    pub(crate) fn push(&mut self, piece: &str) {
        if self.too_long {
            return;
        }
        self.text.push_str(piece);
        if self.text.len() > MAX_ARGUMENT_BYTES {
            self.too_long = true;
            shorten(&mut self.text);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Absent arguments are `{}`; broken ones never are.
    pub(crate) fn parse(self) -> CallArguments {
        if self.too_long {
            return CallArguments::Broken(self.text);
        }
        if self.text.trim().is_empty() {
            return CallArguments::Json(Value::Object(Map::new()));
        }
        match parse_json(&self.text) {
            Ok(value) => CallArguments::Json(value),
            Err(_) => CallArguments::Broken(self.text),
        }
    }

    /// The text of a call that was cut. That it happens to parse does not make it whole.
    pub(crate) fn cut(self) -> CallArguments {
        CallArguments::Broken(self.text)
    }
}

/// An event that holds arguments as JSON, not as text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEvent<'a> {
    pub(crate) text: &'a str,
    /// Whether an object in it has a duplicate key: then its arguments count as broken.
    pub(crate) has_duplicate_keys: bool,
}

/// Arguments that arrive as JSON, within the same limit.
pub(crate) fn from_event(value: Value, event: CallEvent<'_>) -> CallArguments {
    if event.has_duplicate_keys {
        let mut text = event.text.to_owned();
        if text.len() > MAX_ARGUMENT_BYTES {
            shorten(&mut text);
        }
        return CallArguments::Broken(text);
    }
    // Only a large event can hold large arguments, so the usual ones are not written out to be measured.
    if event.text.len() > MAX_ARGUMENT_BYTES { bounded(value) } else { CallArguments::Json(value) }
}

/// Arguments that were read from events of unknown size.
pub(crate) fn bounded(value: Value) -> CallArguments {
    let mut text = value.to_string();
    if text.len() <= MAX_ARGUMENT_BYTES {
        return CallArguments::Json(value);
    }
    shorten(&mut text);
    CallArguments::Broken(text)
}

/// Arguments as an object, which is all that every provider takes back. What is none goes as text in one member: the
/// model then sees what it wrote beside the answer that says what was wrong with it.
pub(crate) fn as_object(arguments: &CallArguments) -> Value {
    match arguments {
        CallArguments::Json(value @ Value::Object(_)) => value.clone(),
        CallArguments::Json(value) => json!({ "_unparsed": value.to_string() }),
        CallArguments::Broken(text) => json!({ "_unparsed": text }),
    }
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(KEPT_BYTES));
    text.push('…');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&str]) -> CallArguments {
        let mut text = ArgumentText::default();
        pieces.iter().for_each(|piece| text.push(piece));
        text.parse()
    }

    #[test]
    fn text_that_is_json_is_passed_on_and_other_text_is_broken() {
        let json = CallArguments::Json;
        let broken = |text: &str| CallArguments::Broken(text.to_owned());
        for (pieces, expected) in [
            (&["{\"ci", "ty\":\"Oslo\"}"][..], json(json!({"city": "Oslo"}))),
            (&[], json(json!({}))),
            (&["", " \n"], json(json!({}))),
            (&["{\"a\":1,\"a\":2}"], broken("{\"a\":1,\"a\":2}")),
            (&["{\"a\":[{\"b\":1,\"b\":1}]}"], broken("{\"a\":[{\"b\":1,\"b\":1}]}")),
            (&["[1]"], json(json!([1]))),
            (&["null"], json(Value::Null)),
            (&["{\"city\": Oslo}"], broken("{\"city\": Oslo}")),
            (&["{\"a\":1} {\"b\":2}"], broken("{\"a\":1} {\"b\":2}")),
            (&["{\"a\":NaN}"], broken("{\"a\":NaN}")),
        ] {
            assert_eq!(parse(pieces), expected, "{pieces:?}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&[&deep]), broken(&deep));
    }

    #[test]
    fn arguments_have_a_largest_size_and_no_more_is_kept() {
        let piece = "é".repeat(100_000);
        let CallArguments::Broken(text) = parse(&vec![piece.as_str(); 20]) else { panic!("it is too long") };
        assert!(text.len() < KEPT_BYTES + 10);
        let value = json!({ "a": "x".repeat(MAX_ARGUMENT_BYTES) });
        for has_duplicate_keys in [false, true] {
            let event = CallEvent { text: &value.to_string(), has_duplicate_keys };
            assert!(
                matches!(from_event(value.clone(), event), CallArguments::Broken(text) if text.len() < KEPT_BYTES + 10)
            );
        }
    }

    #[test]
    fn what_is_no_object_goes_back_as_text_in_one() {
        assert_eq!(as_object(&CallArguments::Json(json!({"a": 1}))), json!({"a": 1}));
        assert_eq!(as_object(&CallArguments::Json(json!([1]))), json!({"_unparsed": "[1]"}));
        assert_eq!(as_object(&CallArguments::Broken("{\"a".to_owned())), json!({"_unparsed": "{\"a"}));
    }
}
