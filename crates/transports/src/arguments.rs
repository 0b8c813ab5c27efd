//! The arguments of calls: as text on their way in, as an object on their way out.

use quarterdeck_contracts::CallArguments;
use serde_json::{Map, Value, json};

/// Longest text of one call's arguments, in bytes.
pub(crate) const MOST_ARGUMENTS: usize = 1 << 20;
/// How much of a longer one is kept, in bytes: enough to see what it was.
const KEPT: usize = 4 << 10;

/// The text of arguments that come in pieces.
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
        if self.text.len() > MOST_ARGUMENTS {
            self.too_long = true;
            shorten(&mut self.text);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What they are. Absent arguments are none, which is not the same as broken ones: those are never taken for `{}`.
    pub(crate) fn parse(self) -> CallArguments {
        if self.too_long {
            return CallArguments::Broken(self.text);
        }
        if self.text.trim().is_empty() {
            return CallArguments::Json(Value::Object(Map::new()));
        }
        match serde_json::from_str(&self.text) {
            Ok(value) => CallArguments::Json(value),
            Err(_) => CallArguments::Broken(self.text),
        }
    }

    /// The text of a call that was cut. That it happens to parse does not make it whole.
    pub(crate) fn cut(self) -> CallArguments {
        CallArguments::Broken(self.text)
    }
}

/// Arguments that come as JSON, within the same limit.
pub(crate) fn whole(value: Value, size_of_event: usize) -> CallArguments {
    // Only a large event can hold large arguments, so the usual ones are not written out to be measured.
    if size_of_event > MOST_ARGUMENTS {
        let mut text = value.to_string();
        if text.len() > MOST_ARGUMENTS {
            shorten(&mut text);
            return CallArguments::Broken(text);
        }
    }
    CallArguments::Json(value)
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
    text.truncate(text.floor_char_boundary(KEPT));
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
            (&["{\"a\":1,\"a\":2}"], json(json!({"a": 2}))),
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
        assert!(text.len() < KEPT + 10);
        let value = json!({ "a": "x".repeat(MOST_ARGUMENTS) });
        assert!(
            matches!(whole(value, MOST_ARGUMENTS + 10), CallArguments::Broken(text) if text.len() < KEPT + 10)
        );
    }

    #[test]
    fn what_is_no_object_goes_back_as_text_in_one() {
        assert_eq!(as_object(&CallArguments::Json(json!({"a": 1}))), json!({"a": 1}));
        assert_eq!(as_object(&CallArguments::Json(json!([1]))), json!({"_unparsed": "[1]"}));
        assert_eq!(as_object(&CallArguments::Broken("{\"a".to_owned())), json!({"_unparsed": "{\"a"}));
    }
}
