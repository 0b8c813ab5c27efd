//! A call has a name and an object of arguments.

use quarterdeck_contracts::ErrorType;
use serde_json::{Map, Value};

use super::{Decision, Facts, Gate, Subject, refuse};

/// The longest name that is looked up at all.
const LONGEST_NAME: usize = 256;

pub(super) struct WellFormed;

impl Gate for WellFormed {
    fn name(&self) -> &'static str {
        "well_formed"
    }

    fn judge(&self, call: &mut Subject<'_>, _: &Facts) -> Decision {
        if call.name.is_empty() || call.name.len() > LONGEST_NAME {
            return refuse(ErrorType::Validation, "The call names no tool.");
        }
        if call.args.is_null() {
            *call.args = Value::Object(Map::new());
        }
        if !call.args.is_object() {
            return refuse(ErrorType::Validation, "The arguments are not a JSON object.");
        }
        Decision::Pass
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{facts, subject, words};
    use super::*;

    fn says(name: &str, args: &mut Value) -> String {
        subject(name, None, args, |call| words(&WellFormed.judge(call, &facts(Mode::Text))))
    }

    #[test]
    fn a_call_has_a_name() {
        for name in [String::new(), "x".repeat(257), "é".repeat(129)] {
            assert_eq!(says(&name, &mut json!({})), "VALIDATION: The call names no tool.");
        }
        assert_eq!(says(&"x".repeat(256), &mut json!({})), "pass");
    }

    #[test]
    fn arguments_are_an_object_and_absent_ones_an_empty_one() {
        let mut absent = Value::Null;
        assert_eq!(says("t", &mut absent), "pass");
        assert_eq!(absent, json!({}));
        for mut args in [json!([]), json!("{}"), json!(0), json!(false)] {
            assert_eq!(says("t", &mut args), "VALIDATION: The arguments are not a JSON object.");
        }
    }
}
