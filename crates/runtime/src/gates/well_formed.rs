//! A call has a name and an object of arguments.

use quarterdeck_contracts::{ErrorType, parse_json};
use serde_json::{Map, Value};

use super::{Decision, Facts, Gate, Subject, refuse};

/// Longer names are not looked up.
const MAX_NAME_BYTES: usize = 256;

const NOT_AN_OBJECT: &str = "The arguments are not a JSON object.";

pub(super) struct WellFormed;

impl Gate for WellFormed {
    fn name(&self) -> &'static str {
        "well_formed"
    }

    fn judge(&self, call: &mut Subject<'_>, _: &Facts) -> Decision {
        if call.name.is_empty() || call.name.len() > MAX_NAME_BYTES {
            return refuse(ErrorType::Validation, "The call names no tool.");
        }
        if call.args.is_null() {
            *call.args = Value::Object(Map::new());
        }
        match &*call.args {
            Value::Object(_) => Decision::Pass,
            // Unreadable arguments come as their text, so that the model gets the parser's reason.
            Value::String(text) => match parse_json(text) {
                Err(fault) => {
                    refuse(ErrorType::Validation, format!("The arguments are not a JSON object: {fault}."))
                }
                Ok(_) => refuse(ErrorType::Validation, NOT_AN_OBJECT),
            },
            _ => refuse(ErrorType::Validation, NOT_AN_OBJECT),
        }
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{describe, facts, subject};
    use super::*;

    fn decide(name: &str, args: &mut Value) -> String {
        subject(name, None, args, |call| describe(&WellFormed.judge(call, &facts(Mode::Text))))
    }

    #[test]
    fn a_call_has_a_name() {
        for name in [String::new(), "x".repeat(257), "é".repeat(129)] {
            assert_eq!(decide(&name, &mut json!({})), "VALIDATION: The call names no tool.");
        }
        assert_eq!(decide(&"x".repeat(256), &mut json!({})), "pass");
    }

    #[test]
    fn arguments_are_an_object_and_absent_ones_an_empty_one() {
        let mut absent = Value::Null;
        assert_eq!(decide("t", &mut absent), "pass");
        assert_eq!(absent, json!({}));
        for mut args in [json!([]), json!("{}"), json!(0), json!(false)] {
            assert_eq!(decide("t", &mut args), "VALIDATION: The arguments are not a JSON object.");
        }
    }

    #[test]
    fn text_that_could_not_be_read_is_refused_with_the_reason() {
        for (text, reason) in [
            (r#"{"approve":false,"approve":true}"#, "the key \"approve\" stands twice at line 1 column 32"),
            ("{\"a\"", "EOF while parsing an object at line 1 column 4"),
        ] {
            assert_eq!(
                decide("t", &mut json!(text)),
                format!("VALIDATION: The arguments are not a JSON object: {reason}.")
            );
        }
    }
}
