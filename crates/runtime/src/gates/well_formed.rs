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
